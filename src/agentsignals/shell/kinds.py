"""The kind of one simple command, by its name and first words (design/signals.md#tool-classes)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agentsignals.model import ShellKind
from agentsignals.shell.tokens import (
    TABLES,
    in_place,
    names,
    operands,
    patterns,
    program,
    shell_text,
    simple_commands,
    vocabulary,
)

Kind = ShellKind | Literal[""]
"""`""` is a command that does not affect the kind of its line: `echo`, `cd`, `sleep`."""

_WORDS = vocabulary("kinds")
_PATTERNS = patterns("kinds")
_KEYWORDS = _WORDS["keywords"]
KINDS: dict[str, Kind] = {
    name: "" if kind == "none" else kind
    for kind, listed in TABLES["kinds"]["commands"].items()
    for name in listed.split()
}
"""Commands that always have the same kind, whatever their arguments."""

ENTERS = names("cd pushd popd set-location")

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=").match
_WRAPPERS = dict.fromkeys(_WORDS["plain_wrappers"], names("")) | {
    name: names(valued) for name, valued in TABLES["kinds"]["wrappers"].items()
}
"""Commands that run the command after them, with their options that take a value."""
_RUNNERS = {name: names(verbs) for verbs, listed in TABLES["kinds"]["runners"].items() for name in listed.split()}
"""Wrappers of two words: `uv run pytest` is `pytest`."""


def leading_words(words: list[str]) -> list[str]:
    """Strip assignments, keywords, `sudo`-like wrappers, `timeout N`, `uv run` and `python -m` from a command."""
    n = 0
    while n < len(words):
        word = words[n]
        if word in KINDS:
            break
        if word in _KEYWORDS or ("=" in word and _ASSIGNMENT(word)):
            n += 1
        elif word in _RUNNERS and n + 1 < len(words) and words[n + 1] in _RUNNERS[word]:
            n = _past_options(words, n + 2, _WORDS["runner_valued"])
        elif word in _WRAPPERS:
            n = _past_options(words, n + 1, _WRAPPERS[word]) + word.endswith("timeout")
        elif "python" in word and (module := _module(words, n)):
            n = module
        else:
            break
    return words[n:] if n else words


def _past_options(words: list[str], n: int, valued: frozenset[str]) -> int:
    while n < len(words) and words[n][:1] == "-":
        if words[n] == "--":
            return n + 1
        n += 2 if words[n] in valued else 1
    return n


_PYTHON = re.compile(r"(?:\S*/)?python[\d.]*(?:\.exe)?$").match


def _module(words: list[str], n: int) -> int:
    """Return the index of the module in `python -m MODULE`, or 0."""
    if not _PYTHON(words[n]):
        return 0
    n += 1
    while n < len(words) and words[n][:1] == "-":
        if words[n] == "-m":
            return n + 1
        n += 2 if words[n] in ("-W", "-X") else 1
    return 0


_TEST_WORD = re.compile(r"(?:t|tests?|e2e|nextest|verify|spec)(?::|$|-)|.*[:_-]tests?$").match


def kind_of(words: list[str], name: str) -> Kind:
    """Return the kind of a command whose name alone does not decide it."""
    if name != words[0] and "test" in words[0] and _PATTERNS["test_script"].search(words[0]):  # `bin/test` is no `test`
        return "test"
    kind = KINDS.get(name)
    if kind is not None:
        return kind
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    return "test" if "test" in name and _PATTERNS["test_script"].search(name) else "run"


def _task(words: list[str]) -> ShellKind:
    """`npm run test:unit`, `go vet`, `mise run lint`, `cargo nextest`: the first word that is no option decides."""
    arguments = [w for w in operands(words, _WORDS["verb_valued"]) if w not in _WORDS["not_the_verb"] and w[:1] != "+"]
    if arguments[:1] == ["workspace"]:
        arguments = arguments[2:]
    first = arguments[0].lstrip(":") if arguments else ""
    if _TEST_WORD(first) or KINDS.get(first) == "test":
        return "test"
    return "build" if _PATTERNS["build_word"].match(first) or KINDS.get(first) == "build" else "run"


def _target(words: list[str]) -> ShellKind:
    """`make` and similar build tools: a build, unless a target is for tests."""
    arguments = operands(words, _WORDS["verb_valued"])
    tests = any(
        w == "check" or w.startswith("test") or _TEST_WORD(w) or w.endswith(("Test", ":test")) for w in arguments
    )
    return "test" if tests else "build"


def _script(words: list[str]) -> ShellKind:
    """A script and its interpreter: a test runner by its name, `manage.py test`, or just a script."""
    if "--test" in words:
        return "test"
    if "-c" in words or "-e" in words:
        return "run"
    script, verb = (*operands(words)[:2], "", "")[:2]
    if _PATTERNS["test_script"].search(f"/{script}") or (verb == "test" and script.endswith((".py", "artisan"))):
        return "test"
    return "build" if script.endswith("setup.py") and verb.startswith("build") else "run"


_NESTED_FINDS = 4


def _find(words: list[str]) -> ShellKind:
    """`find` only searches, unless it deletes or runs something that writes."""
    for _ in range(_NESTED_FINDS):
        option = next((o for o in ("-exec", "-execdir", "-ok") if o in words), None)
        if "-delete" in words or option is None:
            return "write" if "-delete" in words else "search"
        words = leading_words(words[words.index(option) + 1 :])
        name = posixpath.basename(words[0]) if words else ""
        if name != "find":
            kind = kind_of(words, name) if words else ""
            return kind if kind in ("write", "test", "build") else "search"
    return "search"


_SPECIAL: dict[str, Callable[[list[str]], ShellKind]] = {
    **dict.fromkeys(
        names(
            "npm pnpm yarn bun deno mise just task cargo go dotnet swift mix rake turbo nx lerna hatch flutter dart zig"
            " composer rails ng next invoke inv moon"
        ),
        _task,
    ),
    **dict.fromkeys(names("make gmake gradle gradlew mvn mvnw bazel bazelisk sbt ant lein scons meson"), _target),
    **dict.fromkeys(names("bash sh zsh node php python python2 python3 py ts-node tsx"), _script),
    **dict.fromkeys(("sed", "gsed"), lambda words: "write" if in_place(words) else "read"),
    **dict.fromkeys(("perl", "ruby"), lambda words: "write" if in_place(words) else _script(words)),
    "find": _find,
}
DIRECT = {n: f for n, f in _SPECIAL.items() if f is not _script and n not in _RUNNERS and n not in _WRAPPERS}
"""Commands whose first word alone is their name: no wrapper, no shell, no `python -m`."""


def git_verb(words: Sequence[str]) -> list[str]:
    """Return `git` words from the verb on, without global options."""
    n = 1
    while n < len(words) and words[n][:1] == "-":
        n += 2 if words[n] in _WORDS["git_valued"] else 1
    return list(words[n:])


# -- checks: tests, builds, linters, type checkers ---------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z][\w:.-]*")
_FILE_CHECKS = re.compile(r"\.[A-Za-z]{1,5}$")
_QUIET = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\d?>&\d|&>|&&|\\\n")
_HIDES = re.compile(r"[|;&\n]")
"""Operators that hide the exit code of a check: a pipe, another command, the background."""
_TASKS = 3
"""Words of a check's name: `npm run test:unit`, `cargo nextest run`."""


class Check(Struct, frozen=True):
    """A check by its usual name: the command without options and files."""

    name: str
    kind: Literal["test", "build"]
    is_part: bool = False


@lru_cache(maxsize=4096)
def checks(command: str) -> tuple[Check, ...]:
    """Return the checks of a command line, each once, in order."""
    made: dict[Check, None] = {}
    for line, _, _, _ in simple_commands(command):
        words = leading_words(line)
        text = shell_text(words) if words else None
        if text is not None and len(text) < len(command):
            made.update(dict.fromkeys(checks(text)))
            continue
        name = program(words[0]) if words else ""
        kind = (KINDS.get(name) or kind_of([name, *words[1:]], name)) if name else ""
        if kind not in ("test", "build"):
            continue
        named = [name]
        for word in words[1:]:
            # `ruff check`, `vitest run`: what follows the first word is what it is about.
            most = 2 if KINDS.get(name) in ("test", "build") else _TASKS
            if len(named) == most or not _WORD.fullmatch(word) or _FILE_CHECKS.search(word):
                break
            named.append(word)
        made[Check(" ".join(named), kind, any(map(_PATTERNS["part"].search, words[1:])))] = None
    return tuple(made)


def keeps_exit_code(command: str) -> bool:
    """Return whether the line's exit code is that of its check. With 0, all commands joined by `&&` succeeded."""
    return _HIDES.search(_QUIET.sub("", command.strip())) is None
