"""The mechanical rules of an instruction file, by a few declared forms; whatever else it asks is counted, not guessed.

A sentence is a rule where it addresses the agent (an imperative, `must`, `never`), names a command or a path in
backticks, and for a command to run its occasion. What narrows it (`if`, `for`, `unless`, `on shared checkouts`) is kept
as its condition. Advice (`prefer`, `consider`, `can`) is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field, structs

from agentsignals.instructions.command_matching import MANAGERS
from agentsignals.instructions.directives import Directive, Document
from agentsignals.instructions.forms import (
    ADDRESSED,
    ASKS,
    BARE_MANAGER,
    EDITED,
    FOR_PACKAGES,
    FORGET,
    HARMLESS,
    MESSAGE,
    NEGATIVE_HEADING,
    NEVER_BRANCH,
    NEVER_EDIT,
    NEVER_RUN,
    NOT,
    NOT_ADDRESSED,
    OCCASIONS,
    PREFIX,
    RUN,
    RUN_BLOCK,
    SOFT,
    TRAILER,
    UNCHECKED,
    USE,
    USE_NOT,
)
from agentsignals.instructions.rule import Rule, When
from agentsignals.shell.kinds import KINDS, kind_of, leading_words
from agentsignals.shell.programs import program
from agentsignals.shell.tokens import simple_commands
from agentsignals.shell.writing import names

_PROGRAMS = names(
    "npm pnpm yarn bun npx bunx pnpx node deno python python3 pip pip3 uv uvx poetry pdm pipenv hatch tox nox conda go"
    " cargo make just task gradle gradlew mvn bazel docker podman kubectl terraform helm rake bundle rails mix dotnet"
    " swift flutter dart php composer artisan ruby perl ts-node tsx turbo nx lerna sudo curl wget ssh rsync psql mysql"
    " sqlite3 prisma drizzle-kit alembic git gh sed aws gcloud rm chmod kill pkill"
)
"""Programs by whose names a piece of code is taken for a command, beside those that say by themselves what they are
for."""


class Extracted(Struct):
    """What an instruction file asks."""

    rules: list[Rule] = field(default_factory=list)
    others: int = 0
    """Sentences that ask something which is no mechanical rule."""


def extract(document: Document) -> Extracted:
    """The rules of a document, in order, each once; and how many other sentences ask something."""
    made = Extracted()
    seen: set[str] = set()
    for directive in document.directives:
        rules = list(_rules(directive))
        if not rules and ASKS.search(directive.text):
            made.others += 1
        for rule in rules:
            if rule.key not in seen:
                seen.add(rule.key)
                made.rules.append(rule)
    return made


def _rules(stated: Directive) -> Iterator[Rule]:
    directive = _with_managers(_under_negation(stated))
    if SOFT.search(directive.text):
        return
    forbidding = list(_forbidding(directive))
    yield from forbidding
    if not forbidding:
        yield from _demanding(directive)


def _under_negation(directive: Directive) -> Directive:
    """An item of a list that is headed `Never:` is forbidden."""
    heading = directive.under.rpartition(". ")[2].strip()
    match = NEGATIVE_HEADING.match(heading)
    if match is None or re.match(NOT, directive.text, re.IGNORECASE):
        return directive
    verb = f"{match['verb'] or 'use'} " if directive.text.startswith("⟦") else ""
    return structs.replace(directive, text=f"Never {verb}{directive.text}", under="")


def _with_managers(directive: Directive) -> Directive:
    """Package managers are commands without backticks, too, where something is said of using them."""
    if not re.search(r"\buse\b", directive.text, re.IGNORECASE):
        return directive
    code = list(directive.code)

    def marked(match: re.Match[str]) -> str:
        code.append(match[1].lower())
        return f"⟦{len(code) - 1}⟧"

    return structs.replace(directive, text=BARE_MANAGER.sub(marked, directive.text), code=tuple(code))


def _forbidding(directive: Directive) -> Iterator[Rule]:
    text = directive.text
    for n, pattern in enumerate(USE_NOT):
        match = pattern.search(text)
        if match:
            good, bad = (match[1], match[2]) if n == 0 else (match[2], match[1])
            use, against = _commands(directive, good), _commands(directive, bad)
            if use and against:
                condition = _condition(text, match)
                yield _rule(directive, "use", commands=use, instead_of=against, condition=condition)
                return
    if match := UNCHECKED.search(text):
        act = match["act"].lower()
        when: When = "commit" if act == "commit" else "done" if act in ("finish", "complete") else "push"
        if commands := _commands(directive, match[4] if match.lastindex == 4 else match[match.lastindex or 0]):
            yield from _each_run(directive, commands, when, _conditions(text[match.end() :]))
            return
    if (match := NEVER_BRANCH.search(text)) and _is_addressed(text, match.start()):
        branches = tuple(_word(directive, part).removeprefix("origin/") for part in match.groups() if part)
        acts = tuple(act for act in ("commit", "push") if act in match[0].lower())
        yield _rule(directive, "never_branch", commands=acts, branches=branches, condition=_condition(text, match))
        return
    if (
        (match := NEVER_RUN.search(text))
        and _is_addressed(text, match.start())
        and (commands := _commands(directive, match[1]))
    ):
        yield _rule(directive, "never_run", commands=commands, condition=_condition(text, match))
        return
    if (
        (match := NEVER_EDIT.search(text))
        and _is_addressed(text, match.start())
        and (paths := _paths(directive, match[1]))
    ):
        yield _rule(directive, "never_edit", paths=paths, condition=_condition(text, match))
        return
    if match := TRAILER.search(text):
        yield _rule(directive, "message", commands=("no co-author",), condition=_conditions(text))


def _demanding(directive: Directive) -> Iterator[Rule]:
    text = FORGET.sub("", directive.text)
    if re.search(rf"\b{NOT}\b", text, re.IGNORECASE):
        return
    if match := PREFIX.search(text):
        yield _rule(directive, "prefix", commands=(directive.code[int(match[1])],), condition=_condition(text, match))
        return
    if MESSAGE.search(text) and re.search(r"\b(?:use|follow|must|should|format)\b|^⟦?conventional", text, re.I):
        yield _rule(directive, "message", commands=("conventional commits",))
        return
    if (match := USE.search(text)) and _is_addressed(text, match.start()):
        manager = directive.code[int(match[2])]
        family = next((family for family in MANAGERS if manager in family), None)
        if family and FOR_PACKAGES.match(match["tail"]):
            others = tuple(sorted(family - {manager, *(("pip", "pip3") if manager.startswith("pip") else ())}))
            yield _rule(directive, "use", commands=(manager,), instead_of=others, condition=_before(text, match))
            return
    yield from _running(directive, text)


def _running(directive: Directive, text: str) -> Iterator[Rule]:
    """Commands to run at an occasion, which the sentence names or what it stands under."""
    when, paths, rest = _occasion(directive, text)
    if not when:
        return
    match = RUN.search(text)
    if match is not None:
        if not _is_addressed(text, match.start()):
            return
        commands = _commands(directive, match[1])
        is_choice = bool(re.search(r"\bor\b|/", match[1]))
    elif RUN_BLOCK.search(text) and directive.block:
        commands = tuple(c for c in directive.block if _is_command(c)) if len(directive.block) == 1 else ()
        is_choice = False
    elif when and re.fullmatch(r"⟦0⟧\W*", text) and rest is None:
        commands, is_choice = _commands(directive, text), False
    else:
        return
    condition = _conditions(rest or "")
    if is_choice and commands:
        yield _rule(directive, "run", when=when, commands=commands, paths=paths, condition=condition)
    else:
        yield from _each_run(directive, commands, when, condition, paths)


def _each_run(
    directive: Directive, commands: tuple[str, ...], when: When, condition: str, paths: tuple[str, ...] = ()
) -> Iterator[Rule]:
    for command in commands:
        yield _rule(directive, "run", when=when, commands=(command,), paths=paths, condition=condition)


def _occasion(directive: Directive, text: str) -> tuple[When, tuple[str, ...], str | None]:
    """The occasion, the files whose change it is, and the sentence without the words that say so; None where what it
    stands under says it."""
    if (match := EDITED.search(text)) and (paths := _paths(directive, match[1])):
        return "edit", paths, text[: match.start()] + text[match.end() :]
    for when, pattern in OCCASIONS:
        if match := pattern.search(text):
            return when, (), text[: match.start()] + text[match.end() :]
    above = directive.under.rpartition(". ")[2] or directive.under
    for when, pattern in OCCASIONS:
        if (
            (match := pattern.search(above))
            and not above[: match.start()].strip(" :")
            and len(above) < match.end() + 12
        ):
            return when, (), None
    return "", (), text


def _rule(directive: Directive, kind: str, **facts: object) -> Rule:
    return Rule(kind=kind, line=directive.line, text=directive.shown[:300], **facts)  # type: ignore[arg-type]


def _is_addressed(text: str, at: int) -> bool:
    """Whether the verb here is asked of the agent: `run` in `Tests run before …` and `CI must run` is not."""
    before = text[:at]
    if NOT_ADDRESSED.search(before):
        return False
    return bool(ADDRESSED.search(before)) or any(
        p.search(before) and p.sub("", before).strip(" ,") == "" for _, p in OCCASIONS
    )


def _condition(text: str, match: re.Match[str]) -> str:
    """What narrows a rule that forbids: words before it that begin a clause of their own, words behind it."""
    behind = re.split(r"[.;]", text[match.end() :])[0]
    condition = "" if HARMLESS.match(behind) and not _conditions(behind) else behind.strip(" ,")
    return condition or _before(text, match)


def _before(text: str, match: re.Match[str]) -> str:
    before = re.split(r"[;]|(?<!\w)-\s", text[: match.start()])[-1].strip(" ,:")
    before = re.sub(r"\bin (?:this|the) (?:repo|repository|project|codebase)\b", "", before, flags=re.I)
    narrowing = re.search(
        r"\b(?:if|when|whenever|while|during|for|in|on|unless|until|once|with|\w+ (?:workers|agents|users))\b.*",
        before,
        re.I,
    )
    return narrowing[0].strip(" ,") if narrowing else ""


def _conditions(text: str) -> str:
    match = re.search(
        r"\b(?:unless|except|only (?:if|when|in|for|after)|if|when(?:ever)?|while|during"
        r"|without (?:asking|permission|approval|explicit)|for (?!all\b|every\b|each\b|any\b)\w+)\b[^.;,⟦]*", text, re.I
    )  # fmt: skip
    return match[0].strip(" ,:") if match else ""


def _numbers(marks: str) -> list[int]:
    return [int(n) for n in re.findall(r"⟦(\d+)⟧", marks)]


def _word(directive: Directive, part: str) -> str:
    return directive.code[int(part[1:-1])] if part.startswith("⟦") else part


def _commands(directive: Directive, marks: str) -> tuple[str, ...]:
    """The commands of these pieces of code, each of `a && b`; none where one of them is no command."""
    codes = [part.strip() for n in _numbers(marks) for part in directive.code[n].split("&&")]
    codes = [code for n, code in enumerate(codes) if len(codes) == 1 or not code.startswith("cd ")]
    return tuple(codes) if codes and all(map(_is_command, codes)) else ()


def _is_command(code: str) -> bool:
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
    codes = [directive.code[n] for n in _numbers(marks)]
    paths = [code.removeprefix("./") for code in codes]
    is_path = [bool(re.fullmatch(r"[\w.@*{},/\[\]-]+", p)) and bool(re.search(r"/|\.\w+$|^\.\w", p)) for p in paths]
    return tuple(paths) if paths and all(is_path) else ()
