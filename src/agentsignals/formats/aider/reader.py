"""Reads Aider's chat history: each start of the program as a session."""

import hashlib
import re
from collections.abc import Callable, Iterator

import msgspec

from agentsignals.changes.hunks import replaced
from agentsignals.formats import Input, Reading
from agentsignals.formats.aider import BEGINS, PROFILE
from agentsignals.formats.bounds import amount
from agentsignals.formats.builder import charge, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.records import saw, skip
from agentsignals.model import Session, Step, ToolCall, logged_iso

_SAID, _TOLD = "#### ", "> "
_VERSION = re.compile(r"Aider v(\d[\w.+-]*)")
_MODEL = re.compile(r"(?:Main model|Model): (\S+) (?:with|using) ")
_N = r"[0-9]{1,12}(?:\.[0-9]{1,6})?k?"
_TOKENS = re.compile(rf"Tokens: (?P<input>{_N}) sent(?P<cached>.*?), (?P<output>{_N}) received\.")
_CACHED = re.compile(rf"({_N}) cache (write|hit)")
_COST = re.compile(r"Cost: \$([0-9]{1,12}(?:\.[0-9]{1,12})?) message")
_APPLIED = re.compile(r"Applied edit to (.+)")
_FAILED = re.compile(r"(?:# )?\d+ SEARCH/REPLACE blocks? failed to match|The LLM did not conform to the edit format")
_RAN = re.compile(r"Running (.+)")
_PROBLEM = re.compile(r"(?:litellm\.\w+Error|The API provider|Retrying in )")
_BLOCK = re.compile(r"^<{5,9} SEARCH[ \t]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} REPLACE", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"(?:`{3,}|~{3,}|<source>)")


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. The same session in two of them counts once, as the longer one has it."""
    parts: dict[str, tuple[int, Input, int, list[str]]] = {}
    for source in inputs:
        for line, part in _sessions(source):
            source.artifact.records += 1
            own = _id(part)
            if own is None:
                saw(source.artifact, "start")
                continue
            known = parts.get(own)
            saw(source.artifact, "session")
            if known is not None:
                saw(source.artifact, "repeated")
            if known is None or len(part) > known[0]:
                parts[own] = len(part), source, line, part
    return Reading([Reader(source.session(own, "aider", PROFILE.agent), source, line).read(part)
                    for own, (_, source, line, part) in sorted(parts.items())])  # fmt: skip


def _sessions(source: Input) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each session, with the number of its first one."""
    lines = bytes(source.data).decode("utf-8", "replace").splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(BEGINS)]
    if not starts:
        source.artifact.records += 1
        skip(source.artifact, "bad_shape")
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield start + 1, lines[start:end]


def _id(part: list[str]) -> str | None:
    """Return an id that a session keeps while it grows, and in a copy. None if nobody said anything."""
    said = next(filter(_said_in(part), part), None)
    if said is None and not any(_TOKENS.match(line.removeprefix(_TOLD)) for line in part):
        return None
    return f"aider-{hashlib.blake2b(f'{part[0]}{said}'.encode(), digest_size=8).hexdigest()}"


def _said_in(part: list[str]) -> Callable[[str], bool]:
    """Return whether a line of this session is the person's. Aider ends each of these by two spaces, which a heading of
    the model lacks; where a tool has cut the spaces off, every such line is taken."""
    end = "  " if any(line.startswith(_SAID) and line.endswith("  ") for line in part) else ""
    return lambda line: line == _SAID.strip() or (line.startswith(_SAID) and line.endswith(end))


class Reader(Conversation):
    profile = PROFILE

    model: str | None = None
    step: Step | None = None
    """The model call that the tokens to come are of."""
    begun = False
    """The program has said what it is. Before, a prompt of the command line may stand in several lines."""

    def __init__(self, session: Session, source: Input, line: int) -> None:
        super().__init__(session)
        self.first = line
        self.prompted: list[str] = []
        self.answered: list[str] = []
        self.blocks: dict[str, list[tuple[str, str]]] = {}
        """Places that the last answer changes, by file: the text before and after."""
        self.builder.where(source.folder if source.folder.startswith("/") else None)

    def read(self, part: list[str]) -> Session:
        self.session.started_at = logged_iso(part[0].removeprefix(BEGINS).strip())
        is_said = _said_in(part)
        for n, line in enumerate(part[1:], self.first + 1):
            if is_said(line):
                self.close_answer()
                self.prompted.append(line[len(_SAID) :].removesuffix("  "))
            elif line.startswith(_TOLD):
                self.close_prompt()
                self.close_answer()
                self.builder.line = n
                self.told(line[len(_TOLD) :].strip())
            elif line.strip() or self.answered:
                self.close_prompt()
                self.builder.line = self.builder.line if self.answered else n
                self.answered.append(line)
        self.close_prompt()
        self.close_answer()
        return self.builder.finish()

    def close_prompt(self) -> None:
        text = "\n".join(self.prompted).strip()
        self.begun = self.begun or bool(text)
        if text:
            self.step = None
            self.prompt(text, kind="slash_command" if text.startswith(("/", "!")) else "prompt")
        self.prompted = []

    def close_answer(self) -> None:
        text = "\n".join(self.answered).strip()
        self.answered = []
        if not text:
            return
        if not self.begun:
            self.event("meta", text)
            return
        self.step = self.builder.step(None, self.model)
        self.event("text", text, None, self.step)
        self.blocks = {}
        for block in _BLOCK.finditer(text):
            before = [line.strip() for line in text[: block.start()].splitlines() if line.strip()]
            named = next((line for line in reversed(before) if not _FENCE.match(line)), "")
            self.blocks.setdefault(named.strip("*`#: "), []).append((block[1], block[2]))

    def told(self, text: str) -> None:
        """Take a line of the program."""
        if (version := _VERSION.match(text)) is not None:
            self.begun, self.session.agent_version = True, version[1]
        elif (named := _MODEL.match(text)) is not None:
            self.begun = True
            self.model = self.builder.model_changed(self.model, named[1], None)
        elif (used := _TOKENS.match(text)) is not None:
            self.used(used, text)
        elif (applied := _APPLIED.match(text)) is not None:
            self.applied(applied[1])
        elif _FAILED.match(text):
            self.result(self.act("edit", {}).call_id, text, "error")
        elif (ran := _RAN.match(text)) is not None:
            self.act("shell", {"command": ran[1]})
        elif text.startswith("^C"):
            self.event("interrupt", text)
        elif _PROBLEM.match(text):
            self.event("api_error", text)
        elif text:
            self.event("meta", text)

    def current(self) -> Step:
        self.step = self.step or self.builder.step(None, self.model)
        return self.step

    def act(self, name: str, arguments: dict[str, str]) -> ToolCall:
        call_id = f"#{len(self.session.tool_calls)}"
        return self.call(call_id, name, msgspec.json.encode(arguments), None, self.current())

    def used(self, line: re.Match[str], text: str) -> None:
        step = self.current()
        if step.output_tokens is not None:  # a call that left no text
            step = self.step = self.builder.step(None, self.model)
        usage = {"input": _number(line["input"]), "output": _number(line["output"])}
        names = {"hit": "cache_read_input_tokens", "write": "cache_creation_input_tokens"}
        usage |= {names[kind]: _number(n) for n, kind in _CACHED.findall(line["cached"])}
        charge(step, tokens_of(usage, "within_if_fewer"), zeros=False)
        if (cost := _COST.search(text)) is not None:
            step.cost_usd, step.cost_source = amount(float(cost[1])), "recorded"

    def applied(self, path: str) -> None:
        call = self.act("edit", {"path": path})
        self.builder.result(call.call_id, f"Applied edit to {path}", "ok")
        places = self.blocks.pop(path, [])
        creates = len(places) == 1 and not places[0][0].strip()
        self.builder.edit(call, None, "create" if creates else "modify", [replaced(old, new) for old, new in places])


def _number(text: str) -> int:
    """Return the tokens of `730`, `1.2k` or `16k`."""
    return round(float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1))
