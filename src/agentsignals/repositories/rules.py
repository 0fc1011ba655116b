"""The mechanical rules of instruction files: those that commands, edits and commits can keep or break."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Literal

from msgspec import Struct, field, structs

from agentsignals.model import ToolCall
from agentsignals.shell.commands import KINDS, kind_of, leading_words
from agentsignals.shell.tokens import names, program, simple_commands

Kind = Literal["run", "never_run", "use", "never_edit", "never_branch", "prefix", "message"]
"""`run` a command at an occasion; never run one; use one and not its like; never edit files; never commit or push to a
branch; begin every command with a word; write commit messages so."""
When = Literal["", "commit", "push", "change", "done", "edit"]
"""The occasion of `run`: before a commit, before a push or pull request, after code was changed, before work is called
done, after files of `paths` were changed."""


class Rule(Struct, frozen=True, kw_only=True):
    """A rule as a file states it."""

    kind: Kind
    line: int
    text: str
    when: When = ""
    commands: tuple[str, ...] = ()
    """Any one of which keeps a rule to run or to use, or breaks one that forbids; of a branch what is forbidden there
    (`commit`, `push`); of messages how they must be."""
    instead_of: tuple[str, ...] = ()
    """Commands forbidden by a rule to use another."""
    paths: tuple[str, ...] = ()
    """As in a `.gitignore`, seen from the file's folder."""
    branches: tuple[str, ...] = ()
    condition: str = ""
    """Words that narrow it (`unless asked`, `on shared checkouts`): nobody can tell whether they applied."""

    @property
    def key(self) -> str:
        """Identity of a rule however its sentence is put."""
        parts = (self.commands, self.instead_of, self.paths, self.branches)
        return " ".join([self.kind, self.when, *("|".join(sorted(part)) for part in parts if part)])

    @property
    def forbids(self) -> bool:
        """True where an act breaks the rule, false where the lack of one does."""
        return self.kind.startswith("never")


Outcome = Literal["kept", "broken", "cannot_tell"]
_EXCERPT = 160


class Occasion(Struct, frozen=True, kw_only=True):
    """An occasion on which a rule applied, and whether it was kept."""

    outcome: Outcome
    because: str
    seq: int
    turn: int | None
    text: str
    """The command, or the file, that says so."""
    artifact: str | None = None
    line: int | None = None
    """Where the event stands: an artifact's line."""


def occasion_at(outcome: Outcome, because: str, call: ToolCall, text: str = "") -> Occasion:
    shown = " ".join((text or call.command or call.path or call.name).split())[:_EXCERPT]
    return Occasion(outcome=outcome, because=because, seq=call.seq, turn=call.turn, text=shown)


def matching(patterns: tuple[str, ...], path: str) -> str:
    """`yes` where a file lies where a pattern says, as in a `.gitignore`, seen from the root; `maybe` where a plain
    name lies deeper."""
    if any(_pattern(pattern).match(path) for pattern in patterns):
        return "yes"
    plain = [p for p in patterns if "/" not in p.rstrip("/")]
    return "maybe" if any(re.search(rf"(?:^|/){_pattern(p).pattern[1:]}", path) for p in plain) else ""


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    """As a `.gitignore` has it: `**` any folders, `*` within a name; a folder's name stands for all below it."""
    turned = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\{[^}]*\})", pattern.strip("/")):
        if part[:1] == "{":
            body += f"(?:{'|'.join(map(re.escape, part[1:-1].split(',')))})"
        else:
            body += turned.get(part) or re.escape(part)
    anywhere = "(?:.*/)?" if "*" in pattern and "/" not in pattern else ""
    return re.compile(f"^{anywhere}{body}(?:/.*)?$")


_DECLARED = tomllib.loads(Path(__file__).with_name("rule_forms.toml").read_text("utf-8"))
_PARTS = _DECLARED["parts"]


def _compiled(pattern: str) -> re.Pattern[str]:
    while "{{" in pattern:
        pattern = re.sub(r"\{\{(\w+)\}\}", lambda part: _PARTS[part[1]], pattern)
    return re.compile(pattern.replace("\n", ""), re.IGNORECASE)


_FORMS = {name: _compiled(pattern) for name, pattern in _DECLARED["forms"].items()}
_USE = [_compiled(pattern) for pattern in _DECLARED["use"].values()]
_OCCASIONS: dict[When, re.Pattern[str]] = {when: _compiled(pattern) for when, pattern in _DECLARED["occasions"].items()}
_NOT = _compiled("{{not}}")


# What an instruction file tells an agent, sentence by sentence: without code, quotations, examples and tables.
#
# Commands and paths stand in backticks; a sentence keeps them apart from its words, so that no word of a command is
# taken for one of the sentence.

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_SKIPPED = re.compile(r"^\s*(?:>|\||@\S+\s*$|(?:-{3,}|\*{3,}|={3,})\s*$)")
"""Quotations, tables, imports, rulers."""
_CODE = re.compile(r"(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_STRUCK = re.compile(r"~~.+?~~")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_QUOTED = re.compile(r"[“\"][^”\"\n]{12,}[”\"]")
"""Somebody's words, not a single term."""
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z⟦])|(?<=[.!?:])\s*(?:—|–)\s+(?=[A-Z])")
_EXAMPLE = re.compile(
    r"\b(?:examples?|sample|samples|anti-?patterns?|wrong|bad|incorrect|template|changelog|history)\b", re.IGNORECASE
)
"""Headings and openings under which nothing is asked."""
_FILES = ("globs", "applyTo", "paths", "fileMatchPattern")
_ON_REQUEST = ("manual", "model_decision", "auto")
_CHARS = 4_000
_MARK = re.compile(r"⟦(\d+)⟧")


class Directive(Struct, frozen=True, kw_only=True):
    """A sentence of an instruction file, at the line where its paragraph or item begins (1-based)."""

    line: int
    text: str
    """In words; `⟦n⟧` stands for the n-th of `code`."""
    code: tuple[str, ...]
    under: str
    """The heading and the opening that it stands under, in the same form, with marks for code of their own."""
    block: tuple[str, ...] = ()
    """The commands of the code block that the sentence ends in a colon for."""

    @property
    def shown(self) -> str:
        return _MARK.sub(lambda m: f"`{self.code[int(m[1])]}`", self.text)


class Document(Struct, frozen=True, kw_only=True):
    """An instruction file's sentences, and what its head says of where it holds."""

    directives: list[Directive]
    globs: tuple[str, ...] = ()
    """Files that it is about, where its head names them (`globs`, `applyTo`, `paths`, `fileMatchPattern`)."""
    is_optional: bool = False
    """Its head leaves it to the agent or the person whether it is read: `alwaysApply: false` and no files,
    `trigger: manual` (https://docs.windsurf.com/windsurf/cascade/memories), `inclusion: manual`
    (https://kiro.dev/docs/steering)."""
    imports: tuple[str, ...] = ()
    """Files that it takes in (`@AGENTS.md` on a line)."""


class _Block(Struct):
    line: int
    parts: list[str] = field(default_factory=list)
    indent: int | None = None
    """Indent of a list item; None for a paragraph."""
    commands: list[str] = field(default_factory=list)
    is_closed: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.parts)[:_CHARS]

    @property
    def opens(self) -> bool:
        return self.text.rstrip("*_ ").endswith(":")


def read(text: str) -> Document:
    """The sentences of an instruction file."""
    lines = text.replace("\r\n", "\n").split("\n")
    start, head = _head(lines)
    files = next((head[name] for name in _FILES if head.get(name)), "")
    globs = [part.strip().strip("\"'") for part in files.strip("[] ").split(",")]
    return Document(
        directives=list(_directives(lines, start)),
        globs=tuple(glob for glob in globs if glob not in ("", "*", "**", "**/*")),
        is_optional=(head.get("alwaysApply", "").lower() == "false" and not files)
        or (head.get("trigger") or head.get("inclusion") or "").strip("\"'") in _ON_REQUEST,
        imports=tuple(line.strip()[1:] for line in lines if re.fullmatch(r"\s*@[\w./-]+\.mdc?\s*", line)),
    )


def _head(lines: list[str]) -> tuple[int, dict[str, str]]:
    """Return the first line of the text, and the fields of the front matter before it."""
    if not lines or lines[0].strip() != "---":
        return 0, {}
    end = next((n for n, line in enumerate(lines[1:60], 1) if line.strip() == "---"), 0)
    fields: dict[str, str] = {}
    name = ""
    for line in lines[1:end]:
        key, colon, value = line.partition(":")
        if colon and re.fullmatch(r"[A-Za-z]\w*", key):
            name = key
            fields[name] = value.strip()
        elif name and line.strip().startswith("- "):
            fields[name] = f"{fields[name]},{line.strip()[2:]}"
    return end + 1 if end else 0, fields


def _directives(lines: list[str], start: int) -> Iterator[Directive]:
    """Yield the sentences of an instruction file that may hold a rule, with the heading and list item above. Examples
    are left out."""
    heading, opening = "", _Block(0)
    for block in _blocks(lines, start):
        if block.indent == -1:
            heading, opening = block.text, _Block(0)
            continue
        if _EXAMPLE.search(heading):
            continue
        if block.indent is None or block.indent <= (opening.indent if opening.indent is not None else -1):
            opening = _Block(0)
        if not _EXAMPLE.search(opening.text):
            plain, code = _plain(block.text)
            under, _ = _plain(heading if not opening.text else f"{heading}. {opening.text}")
            parts = [part.strip() for part in _SENTENCE.split(plain) if part.strip()]
            for n, part in enumerate(parts):
                numbers = count()
                yield Directive(
                    line=block.line,
                    text=_MARK.sub(lambda _, numbers=numbers: f"⟦{next(numbers)}⟧", part),
                    code=tuple(code[int(mark)] for mark in _MARK.findall(part)),
                    under=under,
                    block=tuple(block.commands) if n == len(parts) - 1 else (),
                )
        if block.opens and not block.commands:
            opening = block


def _blocks(lines: list[str], start: int) -> Iterator[_Block]:
    """Headings (indent -1), paragraphs and items. The commands of a code block go to the text that ends in a colon for
    it, where nothing but blank lines lies between; any other code block is left out."""
    now: _Block | None = None
    at = start
    while at < len(lines):
        line = lines[at][:_CHARS]
        at += 1
        fence = _FENCE.match(line)
        if fence:
            ends = (n for n in range(at, len(lines)) if lines[n].strip().startswith(fence[1]))
            end = next((n for n in ends if not lines[n].strip().strip("`~")), len(lines))
            if now is not None:
                if now.opens:
                    commands = [code.split(" #")[0].strip().removeprefix("$ ") for code in lines[at:end]]
                    now.commands = [command for command in commands if command and not command.startswith("#")]
                yield now
                now = None
            at = end + 1
            continue
        if line.lstrip().startswith("<!--"):
            at = next((n for n in range(at - 1, len(lines)) if "-->" in lines[n]), len(lines)) + 1
            continue
        if not line.strip():
            if now is not None and not now.opens:
                yield now
                now = None
            elif now is not None:
                now.is_closed = True
            continue
        heading, item = _HEADING.match(line), _ITEM.match(line)
        is_new = bool(heading or item or _SKIPPED.match(line))
        if now is not None and (is_new or now.is_closed):
            yield now
            now = None
        if heading:
            yield _Block(at, [heading[1]], -1)
        elif item:
            now = _Block(at, [line[item.end() :].strip()], len(item[1].expandtabs(4)))
        elif not is_new and (now is not None or not line.startswith(("    ", "\t"))):  # the others: code by indentation
            now = now or _Block(at)
            now.parts.append(line.strip())
    if now is not None:
        yield now


def _plain(text: str) -> tuple[str, list[str]]:
    """Without emphasis, links, what was struck out or quoted; code in backticks as marks, and the codes."""
    code: list[str] = []

    def kept(match: re.Match[str]) -> str:
        code.append(match[2].strip())
        return f"⟦{len(code) - 1}⟧"

    marked = _CODE.sub(kept, _STRUCK.sub(" ", text.replace("⟦", "[").replace("⟧", "]")))
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", _QUOTED.sub(" ", marked))).split()), code


# The mechanical rules of an instruction file, by a few declared forms; whatever else it asks is counted, not
# guessed.
#
# A sentence is a rule where it addresses the agent (an imperative, `must`, `never`), names a command or a path in
# backticks, and for a command to run its occasion. What narrows it (`if`, `for`, `unless`, `on shared checkouts`)
# is kept as its condition. Advice (`prefer`, `consider`, `can`) is none.

MANAGERS = (names("npm yarn pnpm bun"), names("pip pip3 uv poetry pdm pipenv conda"))
"""Package managers of which a project uses one: `use pnpm` forbids the others."""
_PROGRAMS = names(
    "npm pnpm yarn bun npx bunx pnpx node deno python python3 pip pip3 uv uvx poetry pdm pipenv hatch tox nox conda go"
    " cargo make just task gradle gradlew mvn bazel docker podman kubectl terraform helm rake bundle rails mix dotnet"
    " swift flutter dart php composer artisan ruby perl ts-node tsx turbo nx lerna sudo curl wget ssh rsync psql mysql"
    " sqlite3 prisma drizzle-kit alembic git gh sed aws gcloud rm chmod kill pkill"
)
"""Programs by whose names code is taken for a command, beside those that say by themselves what they are for."""


class Extracted(Struct):
    """Rules of an instruction file, and the count of sentences that are none."""

    rules: list[Rule] = field(default_factory=list)
    others: int = 0
    """Sentences that ask something which is no mechanical rule."""


def extract(document: Document) -> Extracted:
    """The rules of a document, in order, each once; and how many other sentences ask something."""
    made = Extracted()
    seen: set[str] = set()
    for stated in document.directives:
        directive = _spelled_out(stated)
        rules: list[Rule] = []
        if not _FORMS["soft"].search(directive.text):
            rules = list(_forbidding(directive)) or list(_demanding(directive))
        if not rules and _FORMS["asks"].search(stated.text):
            made.others += 1
        for rule in rules:
            if rule.key not in seen:
                seen.add(rule.key)
                made.rules.append(rule)
    return made


def _spelled_out(directive: Directive) -> Directive:
    """With what a sentence leaves out: an item of a list that is headed `Never:` is forbidden; package managers are
    commands without backticks, too, where something is said of using them."""
    heading = directive.under.rpartition(". ")[2].strip()
    match = _FORMS["negative_heading"].match(heading)
    if match is not None and not _NOT.match(directive.text):
        verb = f"{match['verb'] or 'use'} " if directive.text.startswith("⟦") else ""
        directive = structs.replace(directive, text=f"Never {verb}{directive.text}", under="")
    if not re.search(r"\buse\b", directive.text, re.IGNORECASE):
        return directive
    code = list(directive.code)

    def marked(match: re.Match[str]) -> str:
        code.append(match[1].lower())
        return f"⟦{len(code) - 1}⟧"

    return structs.replace(directive, text=_FORMS["bare_manager"].sub(marked, directive.text), code=tuple(code))


def _forbidding(directive: Directive) -> Iterator[Rule]:
    """Yield the rules that a sentence states by forbidding something or by naming what to use instead."""
    text = directive.text
    for n, pattern in enumerate(_USE):
        if match := pattern.search(text):
            good, bad = (match[1], match[2]) if n == 0 else (match[2], match[1])
            use, against = _commands(directive, good), _commands(directive, bad)
            if use and against:
                condition = _condition(text, match)
                yield _rule(directive, "use", commands=use, instead_of=against, condition=condition)
                return
    if match := _FORMS["unchecked"].search(text):
        act = match["act"].lower()
        when: When = "commit" if act == "commit" else "done" if act in ("finish", "complete") else "push"
        if commands := _commands(directive, match[match.lastindex or 0]):
            condition = _conditions(text[match.end() :])
            for command in commands:
                yield _rule(directive, "run", when=when, commands=(command,), condition=condition)
            return
    kinds: tuple[Kind, ...] = ("never_branch", "never_run", "never_edit")
    for kind in kinds:
        match = _FORMS[kind].search(text)
        if match is None or not _is_addressed(text, match.start()):
            continue
        facts: dict[str, tuple[str, ...]]
        if kind == "never_branch":
            named = [part for part in match.groups() if part]
            branches = [directive.code[int(part[1:-1])] if part.startswith("⟦") else part for part in named]
            facts = {
                "commands": tuple(act for act in ("commit", "push") if act in match[0].lower()),
                "branches": tuple(branch.removeprefix("origin/") for branch in branches),
            }
        elif kind == "never_run":
            facts = {"commands": _commands(directive, match[1])}
        else:
            facts = {"paths": _paths(directive, match[1])}
        if any(facts.values()):
            yield _rule(directive, kind, **facts, condition=_condition(text, match))
            return
    if _FORMS["trailer"].search(text):
        yield _rule(directive, "message", commands=("no co-author",), condition=_conditions(text))


def _demanding(directive: Directive) -> Iterator[Rule]:
    """Yield the rules that a sentence states by asking for something: a prefix, a tool, a command to run."""
    text = _FORMS["forget"].sub("", directive.text)
    if re.search(rf"\b{_NOT.pattern}\b", text, re.IGNORECASE):
        return
    if match := _FORMS["prefix"].search(text):
        yield _rule(directive, "prefix", commands=(directive.code[int(match[1])],), condition=_condition(text, match))
        return
    if _FORMS["message"].search(text) and re.search(
        r"\b(?:use|follow|must|should|format)\b|^⟦?conventional", text, re.I
    ):
        yield _rule(directive, "message", commands=("conventional commits",))
        return
    if (match := _FORMS["use"].search(text)) and _is_addressed(text, match.start()):
        manager = directive.code[int(match[2])]
        family = next((family for family in MANAGERS if manager in family), None)
        if family and _FORMS["for_packages"].match(match["tail"]):
            others = tuple(sorted(family - {manager, *(("pip", "pip3") if manager.startswith("pip") else ())}))
            yield _rule(directive, "use", commands=(manager,), instead_of=others, condition=_before(text, match))
            return
    yield from _running(directive, text)


def _running(directive: Directive, text: str) -> Iterator[Rule]:
    """Commands to run at an occasion, which the sentence names or what it stands under."""
    when: When = ""
    paths: tuple[str, ...] = ()
    rest: str | None = text
    """The sentence without the words that say the occasion; None where what it stands under says it."""
    match = _FORMS["edited"].search(text)
    if match and (paths := _paths(directive, match[1])):
        when = "edit"
    else:
        found = ((name, m) for name, pattern in _OCCASIONS.items() if (m := pattern.search(text)))
        when, match = next(found, (when, None))
    if match:
        rest = text[: match.start()] + text[match.end() :]
    else:
        above = directive.under.rpartition(". ")[2] or directive.under
        for name, pattern in _OCCASIONS.items():
            match = pattern.search(above)
            if match and not above[: match.start()].strip(" :") and len(above) < match.end() + 12:
                when, rest = name, None
                break
    if not when:
        return
    commands: tuple[str, ...] = ()
    is_choice = False
    if match := _FORMS["run"].search(text):
        if _is_addressed(text, match.start()):
            commands = _commands(directive, match[1])
        is_choice = bool(re.search(r"\bor\b|/", match[1]))
    elif _FORMS["run_block"].search(text) and directive.block:
        commands = tuple(c for c in directive.block if _is_command(c)) if len(directive.block) == 1 else ()
    elif re.fullmatch(r"⟦0⟧\W*", text) and rest is None:
        commands = _commands(directive, text)
    condition = _conditions(rest or "")
    for alternatives in [commands] if is_choice and commands else [(command,) for command in commands]:
        yield _rule(directive, "run", when=when, commands=alternatives, paths=paths, condition=condition)


def _rule(directive: Directive, kind: str, **facts: object) -> Rule:
    return Rule(kind=kind, line=directive.line, text=directive.shown[:300], **facts)  # type: ignore[arg-type]


def _is_addressed(text: str, at: int) -> bool:
    """Return whether the agent is addressed: `run` in `Tests run before …` and `CI must run` does not address it."""
    before = text[:at]
    if _FORMS["not_addressed"].search(before):
        return False
    return bool(_FORMS["addressed"].search(before)) or any(
        p.search(before) and p.sub("", before).strip(" ,") == "" for p in _OCCASIONS.values()
    )


def _condition(text: str, match: re.Match[str]) -> str:
    """Return the words that narrow a ban: a clause of their own before it, or words behind it."""
    behind = re.split(r"[.;]", text[match.end() :])[0]
    condition = "" if _FORMS["harmless"].match(behind) and not _conditions(behind) else behind.strip(" ,")
    return condition or _before(text, match)


def _before(text: str, match: re.Match[str]) -> str:
    before = re.split(r"[;]|(?<!\w)-\s", text[: match.start()])[-1].strip(" ,:")
    before = re.sub(r"\bin (?:this|the) (?:repo|repository|project|codebase)\b", "", before, flags=re.I)
    narrowing = _FORMS["narrowing"].search(before)
    return narrowing[0].strip(" ,") if narrowing else ""


def _conditions(text: str) -> str:
    match = _FORMS["condition"].search(text)
    return match[0].strip(" ,:") if match else ""


def _commands(directive: Directive, marks: str) -> tuple[str, ...]:
    """The commands of these pieces of code, each of `a && b`; none where one of them is no command."""
    codes = [part.strip() for n in _MARK.findall(marks) for part in directive.code[int(n)].split("&&")]
    codes = [code for code in codes if len(codes) == 1 or not code.startswith("cd ")]
    return tuple(codes) if codes and all(map(_is_command, codes)) else ()


def _is_command(code: str) -> bool:
    """Return whether code in a sentence is a shell command, and not a name, path or expression."""
    if re.search(r"[|()=]|^-|^@|^\.?/?$", code) or "\n" in code:
        return False
    lines = simple_commands(code)
    words = (leading_words(lines[0][0]) or lines[0][0]) if len(lines) == 1 else []
    if not words:
        return False
    name = program(words[0])
    return (
        name in _PROGRAMS
        or (bool(KINDS.get(name)) and name.isascii())
        or (len(words) > 1 and kind_of([name, *words[1:]], name) != "run")
        or bool(re.fullmatch(r"(?:\./)?[\w./-]+\.sh|\./[\w./-]+|[a-z]+(?::[a-z-]+)+", words[0]))
    )


def _paths(directive: Directive, marks: str) -> tuple[str, ...]:
    paths = [directive.code[int(n)].removeprefix("./") for n in _MARK.findall(marks)]
    is_path = [bool(re.fullmatch(r"[\w.@*{},/\[\]-]+", p)) and bool(re.search(r"/|\.\w+$|^\.\w", p)) for p in paths]
    return tuple(paths) if paths and all(is_path) else ()
