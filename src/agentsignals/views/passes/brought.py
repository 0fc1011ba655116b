"""What commands put onto the tree from elsewhere, as deeds: files taken whole, commits, patches, ready solutions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.edits.tracking import WHOLE_TREE
from agentsignals.model import RAN, ToolCall
from agentsignals.model.attempt import Attempt
from agentsignals.patterns import deferred_pattern
from agentsignals.shell import parse
from agentsignals.shell.git_commands import git_verb
from agentsignals.shell.kinds import leading_words
from agentsignals.shell.outside import future_of, outside
from agentsignals.shell.tokens import simple_commands
from agentsignals.shell.writing import names, operands
from agentsignals.views.passes.act import Act
from agentsignals.views.passes.seen import HASH, Seen, is_answer
from agentsignals.views.passes.standing import File, Written
from agentsignals.views.session import SessionView

_APPLIES = deferred_pattern(r"\|\s*(?:git\s+(?:apply|am)|patch)\b")
_BRINGS = names("cherry-pick merge pull am rebase")
_ABORTS = names("--abort --quit --skip --continue")
_NOTHING = deferred_pattern(r"Already up[ -]to[ -]date|is up to date|fatal:|error:|Could not resolve", re.IGNORECASE)
_SOLUTION = deferred_pattern(r"(?:^|[/_.-])(?:solutions?|oracle|gold(?:en)?|solve)(?:[/_.-]|$)", re.IGNORECASE)


def taken(files: list[File], shown: Seen) -> Iterator[Act]:
    """Files whose text a command put there from outside, whole; not from a commit that the base's own log names."""
    for file in files:
        if file.taken is None:
            continue
        origin, source = file.taken.origin, file.taken.source
        hashes = HASH.findall(source) if origin == "repository" else []
        if hashes and all(hash_[:7] in shown.past for hash_ in hashes):
            continue
        if origin in ("repository", "network", "package", "copied"):
            channel = origin
            yield Act(channel=channel, seq=file.taken.seq, path=file.path, text=f"took the file from {source}")


def brought(view: SessionView, attempt: Attempt, wrote: Written, shown: Seen) -> Iterator[Act]:
    """Commits, patches and solutions that a command put onto the tree, and the project itself taken from a package
    index."""
    project = (attempt.task_id or "").rpartition("/")[2].partition("-")[0].rpartition("__")[2].lower()
    left: Act | str = ""
    """That it stands at a revision which need not be the base or before it, unless it went back."""
    for call in view.session.tool_calls:
        if call.status not in RAN or call.command is None:
            continue
        output = view.result_text(call)
        if _NOTHING.search(output):
            yield from _installed(call, project)
            continue
        sources = [source for source in outside(call.command) if source.origin in ("repository", "network")]
        if sources and _APPLIES.search(call.command):
            origin = sources[0].origin
            yield Act(channel=origin, seq=call.seq, path=WHOLE_TREE, text=call.command[:160])  # type: ignore[arg-type]  # one of the two above
        yield from _ready(view, call, wrote, shown)
        yield from _installed(call, project)
        for words, *_ in simple_commands(call.command):
            words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
            verb = git_verb(words) if words[:1] == ["git"] else []
            text = " ".join(words)[:160]
            if verb[:1] and verb[0] in _BRINGS and not _ABORTS.intersection(verb):
                yield Act(channel="repository", seq=call.seq, path=WHOLE_TREE, text=text)
            if verb[:1] and verb[0] in ("checkout", "switch") and "--" not in verb:
                revision = next((r for w in operands(verb) if (r := future_of(w))), "")
                left = revision and Act(channel="repository", seq=call.seq, path=WHOLE_TREE, text=text, is_open=True)
    if isinstance(left, Act):
        yield left


def _ready(view: SessionView, call: ToolCall, wrote: Written, shown: Seen) -> Iterator[Act]:
    """Patches that it applied and solutions that it ran, whose text it did not write."""
    command = call.command or ""
    if "--check" in command and command.count("apply") == 1:
        return
    for reader, path in parse(command).runs:
        if path in wrote.texts or path in shown.asked:
            continue
        source = wrote.carried.get(path)
        if reader == "patch":
            if source is not None and source.origin == "repository" and not future_of(source.source):
                continue  # its own work, put by
            entry = wrote.files.get(path)
            if source is None and entry is not None:
                continue
            is_known = source is not None or is_answer(view, path, wrote)
            channel = source.origin if source is not None else "copied"
            text = f"applied {path}" + (f" from {source.source}" if source is not None else ", which it did not write")
            if channel in ("repository", "network", "package", "copied"):
                yield Act(channel=channel, seq=call.seq, path=WHOLE_TREE, text=text[:160], is_open=not is_known)
        elif path[:1] in "/~" and _SOLUTION.search(path) and is_answer(view, path, wrote):
            yield Act(channel="copied", seq=call.seq, path=WHOLE_TREE, text=f"ran {path}, which it did not write")


def _installed(call: ToolCall, project: str) -> Iterator[Act]:
    """The project itself: for what it needs, perhaps; what was then read or taken shows itself."""
    for words, *_ in simple_commands(call.command or "") if project else ():
        words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
        if words[:1] and words[0].startswith("pip") and "install" in words:
            for word in operands(words)[1:]:
                if re.split(r"[=<>!~\[]", word)[0].lower() == project:
                    yield Act(channel="package", seq=call.seq, path=word, text=" ".join(words)[:160], is_open=True)
