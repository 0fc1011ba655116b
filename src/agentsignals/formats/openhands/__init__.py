"""OpenHands conversations: `~/.openhands/conversations/<id>/` with a file for each event and one for the state
(design/formats.md#openhands)."""

import posixpath
import re
from collections.abc import Mapping

from agentsignals.formats import Claim, Format, session_folder
from agentsignals.formats import profile as tools
from agentsignals.formats.records import CUT, Head

TERMINAL = tools.SHELL.within("timeout")

PROFILE = tools.Profile(
    agent="openhands",
    conventions=("rewinds_logged",),
    aliases=("open-hands", "openhands-sdk"),
    homes=("$OPENHANDS_PERSISTENCE_DIR/conversations", "~/.openhands/conversations"),
    tools=tools.named(
        (TERMINAL, "terminal execute_bash"),
        (tools.EDIT, "file_editor str_replace_editor planning_file_editor edit apply_patch"),
        (tools.WRITE, "write_file"),
        (tools.READ, "read_file"),
        (tools.SEARCH, "grep"),
        (tools.FIND, "glob list_directory"),
        (tools.PLAN, "task_tracker"),
        (tools.TASK, "task delegate ask_oracle workflow consult_tom"),
        (tools.SKILL, "invoke_skill"),
        (tools.ASIDE, "think finish switch_llm vision_inspect"),
    ),
    tools_like={"browser_*": tools.WEB},
    nothing_found=("No files found", "No matches found", "No results found"),
    failures=(("invalid_arguments", ("error validating tool",)),),
    frame=(r"\[The command completed with exit code -?\d+\.\]",),
)


EVENT_FILE = re.compile(r"(?:^|/)(?:events/)?event-(\d{5,})-[0-9a-fA-F-]{8,64}\.json$")
STATE_FILE = "base_state.json"
_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SOURCES = ("agent", "user", "environment", "hook")
_SAYS = ("llm_message", "thought", "tool_call_id", "system_prompt", "forgotten_event_ids", "detail", "key")
_SUBAGENTS = "subagents"


def claims(head: Head) -> Claim | None:
    """An event names neither its conversation nor its number: its place does. Files of a conversation share its folder,
    copies of it its id, and subagents the folder that they lie in."""
    document, folder = head.document, folder_of(head.path)
    if is_of_evaluation(document):
        return Claim(keys=[], lends=posixpath.dirname(head.path))
    if is_output(head.data):
        return Claim(keys=[], root=posixpath.dirname(head.path))
    stats, name = document.get("stats"), posixpath.basename(head.path)
    is_state = isinstance(stats, dict) and "usage_to_metrics" in stats and "execution_status" in document
    is_cut_state = name == STATE_FILE and "id" in document and document.get("agent") is CUT
    facts = [document.get(name) for name in ("id", "timestamp", "source")]
    is_named = EVENT_FILE.search(head.path) is not None and all(isinstance(fact, str) for fact in facts)
    # `kind` comes last: of a long event, or a torn one, it is not seen.
    says = isinstance(document.get("kind"), str) or any(name in document for name in _SAYS)
    if not (is_state or is_cut_state or (is_named and facts[2] in _SOURCES and says)):
        return None
    keys = [f"folder:{folder}"]
    if (conversation := conversation_of(folder)) is not None:
        keys.append(f"session:{conversation}")
    if (parent := parent_folder(folder)) is not None:
        keys.append(f"folder:{parent}")
    return Claim(keys=keys)


def is_of_evaluation(document: Mapping[str, object]) -> bool:
    """Return whether a document is the configuration of an evaluation run, which its instances share."""
    llm = document.get("llm")
    is_named = llm is CUT or (isinstance(llm, Mapping) and isinstance(llm.get("model"), str))
    return is_named and isinstance(document.get("dataset"), str) and "max_iterations" in document


def is_output(begin: bytes) -> bool:
    """Return whether a file begins as the outputs of an evaluation run do."""
    return _OUTPUT.match(begin) is not None


_OUTPUT = re.compile(
    rb'\s*\{\s*"instance_id"\s*:\s*"[^"]{1,300}"\s*,\s*(?:"attempt"\s*:\s*\d+\s*,\s*"test_result"\s*:|'
    rb'"test_result"\s*:\s*\{\s*"git_patch"\s*:)'
)


def folder_of(path: str) -> str:
    """Return the conversation's folder of a file."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if posixpath.basename(folder) == "events" else folder


def conversation_of(folder: str) -> str | None:
    """Return the conversation's id from its folder's name, or None if the folder has another name."""
    name = posixpath.basename(folder).lower()
    return name.replace("-", "") if _ID.fullmatch(name) else None


def parent_folder(folder: str) -> str | None:
    """Return the folder of the conversation that a subagent's folder lies in, or None."""
    above = posixpath.dirname(folder)
    return posixpath.dirname(above) if posixpath.basename(above) == _SUBAGENTS else None


FORMAT = Format(
    name="openhands",
    marks=(b'"execution_status"', b'"agent"', b'"source"', b'"max_iterations"', b'"test_result"'),
    version=5,
    claims=claims,
    unit=session_folder("events", "subagents"),
    profile=PROFILE,
    snapshots=False,
)
