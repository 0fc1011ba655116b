"""Reads SpecStory's Markdown: what the person and the agent said, and calls as far as they are shown."""

import html
import re
from collections.abc import Iterator

import msgspec

from agentsignals.formats import Input, Reading, profile_of
from agentsignals.formats.any_agent import tool as tool_named
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import EDIT, OTHER, READ, SEARCH, SHELL, Profile, Tool
from agentsignals.formats.records import saw
from agentsignals.formats.specstory import NAMED
from agentsignals.model import MAIN, CallStatus, Session, Step, logged_iso

_HEADING = re.compile(r"_\*\*(?P<who>User|Agent|Assistant)(?P<aside> - sidechain)?(?: \((?P<facts>[^()]*)\))?\*\*_\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*(?: [+-]\d{4})?\Z")
_CALL = re.compile(r'<tool-use data-tool-type="(?P<type>[^"]*)" data-tool-name="(?P<name>[^"]*)">')
_ENDS_CALL, _ENDS_THOUGHT = "</tool-use>", "</think>"
_THOUGHT = "<think>"
_SUMMARY = re.compile(r"<summary>(?:Tool use: \*\*[^*]*\*\*)?(.*?)</summary>", re.DOTALL)
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>\w*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FILE = re.compile(r"(?:Edit|Read|Write|Create|Delete) file: `?([^`\n]+)")
_SHELLS = ("bash", "sh", "shell", "zsh")
_BY_TYPE = {"shell": SHELL, "read": READ, "search": SEARCH, "write": EDIT}
_AGENTS = {
    "codex-cli": "codex", "cursor-ide": "cursor-agent", "cursor-cli": "cursor-agent", "cursor": "cursor-agent",
    "factory-droid-cli": "factory-droid", "copilot-ide": "vscode-copilot",
}  # fmt: skip
"""Agents by SpecStory's names of them, where these are not their own."""


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of several exports of a session the longest counts."""
    longest: dict[str, tuple[int, Input, re.Match[str], str]] = {}
    for source in inputs:
        text = bytes(source.data).decode("utf-8", "replace")
        source.artifact.records += 1
        saw(source.artifact, "session")
        if (named := NAMED.search(text)) is not None and len(text) > longest.get(named["id"], (0,))[0]:
            longest[named["id"]] = len(text), source, named, text
    return Reading([Reader(source, named).read(text) for _, source, named, text in longest.values()])


class Reader(Conversation):
    """A model call has no record: it is what is thought, said and called until something is said after a call."""

    def __init__(self, source: Input, named: re.Match[str]) -> None:
        program = named["program"].lower().replace(" ", "-")
        agent = _AGENTS.get(program, program)
        self.profile = profile_of(agent) or Profile(agent=agent)
        super().__init__(source.session(named["id"], "specstory", self.profile.agent))
        self.session.started_at = logged_iso(named["time"])
        self.step: Step | None = None
        self.called = False

    def read(self, text: str) -> Session:
        for number, heading, lines in _parts(text):
            self.builder.line = number
            at, model = _facts(heading["facts"])
            self.thread = "sidechain" if heading["aside"] else MAIN
            words = "\n".join(lines).strip().removesuffix("\n---").strip()
            if heading["who"] == "User":
                self.step = None
                self.prompt(words, at)
            else:
                self.say(words, at, model)
        return self.builder.finish()

    def say(self, words: str, at: int | None, model: str | None) -> None:
        if self.step is None or self.step.thread != self.thread or (self.called and not _CALL.match(words)):
            self.step, self.called = self.builder.step(None, model, at, self.thread), False
        while words:
            call, thought = _CALL.search(words), words.find(_THOUGHT)
            first = min((p for p in (call.start() if call else -1, thought) if p >= 0), default=len(words))
            if said := words[:first].strip():
                self.event("text", html.unescape(said), at, self.step)
            words = words[first:]
            closing = _ENDS_THOUGHT if words.startswith(_THOUGHT) else _ENDS_CALL
            part, _, words = words.partition(closing)
            if closing == _ENDS_THOUGHT and part:
                self.event("thinking", _inside(part), at, self.step)
            elif call is not None and part:
                self.called = True
                self.tool_use(call, part, at)

    def tool_use(self, call: re.Match[str], part: str, at: int | None) -> None:
        name, shown = call["name"], part[part.find(">") + 1 :]
        tool: Tool = self.profile.tool(name) or tool_named(name) or _BY_TYPE.get(call["type"], OTHER)
        fences = list(_FENCE.finditer(shown))
        outside = _FENCE.sub("", shown)
        command = path = None
        if tool.class_ == "shell":
            given = next((f for f in fences if f["kind"] in _SHELLS), None)
            quoted = _QUOTED.search(outside)
            command = given["text"].strip() if given is not None else quoted[1] if quoted is not None else None
            fences = [f for f in fences if f is not given]
        elif (file := _FILE.search(outside) or _QUOTED.search(outside)) is not None and tool.class_ in ("read", "edit"):
            path = file[1].strip().removesuffix("</summary>")
        call_id = f"call-{len(self.session.tool_calls)}"
        arguments = {"command": command} if command is not None else {"file_path": path} if path else {}
        self.builder.call(call_id, name, msgspec.json.encode(arguments), tool, at, self.step, self.thread, path)
        if fences and fences[-1]["kind"] != "diff":
            text = html.unescape(fences[-1]["text"])
            code = exit_code(text) if tool.class_ == "shell" else None
            status: CallStatus = "unknown" if code is None else "error" if code else "ok"
            self.result(call_id, text, status, None, None, code)


def _parts(text: str) -> Iterator[tuple[int, re.Match[str], list[str]]]:
    """Yield the parts of a file by their headings, each with its line. What a call shows is no heading."""
    heading, start, lines, in_call = None, 0, list[str](), False
    for number, line in enumerate(text.splitlines(), 1):
        in_call = (in_call or _CALL.match(line) is not None) and _ENDS_CALL not in line
        found = None if in_call else _HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        if heading is not None:
            yield start, heading, lines
        heading, start, lines = found, number, []
    if heading is not None:
        yield start, heading, lines


def _facts(facts: str | None) -> tuple[int | None, str | None]:
    time = _TIME.search(facts or "")
    model = (facts or "")[: time.start() if time else None].strip().removeprefix("model ").partition(",")[0]
    return logged_iso(time[0]) if time else None, model if model and not model.startswith("<") else None


def _inside(part: str) -> str:
    return (
        html.unescape(_SUMMARY.sub("", part).replace(_THOUGHT, ""))
        .replace("<details>", "")
        .replace("</details>", "")
        .strip()
    )
