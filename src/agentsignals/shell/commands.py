"""One simple command: its kind, by its name and first words (design/signals.md#tool-classes), and the text it prints.

Where the text is unknown, its origin is told instead, for the file that the output goes into.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agentsignals.model import EditOrigin, ShellKind
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell.tokens import (
    TABLES,
    UNRESOLVED,
    Simple,
    in_place,
    names,
    operands,
    patterns,
    program,
    shell_text,
    simple_commands,
    simples,
    split,
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

_WORD = deferred_pattern(r"[A-Za-z][\w:.-]*")
_FILE_CHECKS = deferred_pattern(r"\.[A-Za-z]{1,5}$")
_QUIET = deferred_pattern(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\d?>&\d|&>|&&|\\\n")
_HIDES = deferred_pattern(r"[|;&\n]")
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


_OUTPUT_WORDS = vocabulary("outputs")
_OUTPUT_PATTERNS = patterns("outputs")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "r": "\r"}


class Output(Struct, frozen=True, gc=False):
    text: str | None
    origin: EditOrigin
    source: str | None = None


def printed(words: Sequence[str], name: str, heredoc: str | None, input_: Output | None) -> Output:
    """Return what a command prints. `input_` is its standard input from a pipe."""
    if heredoc is not None and name in ("cat", "tee"):
        return Output(heredoc, "written")
    if name in ("echo", "printf", "write-output"):
        text = _echoed(words) if name != "printf" else _formatted(words)
        return Output(text, "written") if text is not None else Output(None, "program", name)
    if name in _OUTPUT_WORDS["fetches"]:
        return Output(None, "network", next((w for w in words[1:] if "://" in w), name))
    if name == "git":
        verb = git_verb(words)
        if verb[:1] and verb[0] in _OUTPUT_WORDS["shows"]:
            shown = next((w for w in verb[1:] if w[:1] != "-" and w not in _OUTPUT_WORDS["objects"]), verb[0])
            return Output(None, "repository", shown)
    if input_ is not None and (name == "tee" or (name == "cat" and not operands(words))):
        return input_
    if name == "cat" and len(files := operands(words)) == 1 and not UNRESOLVED(files[0]):
        return Output(None, "copied", files[0])
    if input_ is not None and name in _OUTPUT_WORDS["passes_on"] and input_.origin != "written":
        return Output(None, input_.origin, input_.source)
    return Output(None, "program", name or None)


def _echoed(words: Sequence[str]) -> str | None:
    n, escapes, ends = 1, False, "\n"
    while n < len(words) and re.fullmatch(r"-[neE]+", words[n]):
        ends, escapes = "" if "n" in words[n] else ends, escapes or "e" in words[n]
        n += 1
    text = " ".join(words[n:])
    if _OUTPUT_PATTERNS["expanded"].search(text):
        return None
    return (_unescaped(text) if escapes else text) + ends


def _formatted(words: Sequence[str]) -> str | None:
    arguments = list(words[2:] if words[1:2] == ["--"] else words[1:])
    if not arguments or any(map(_OUTPUT_PATTERNS["expanded"].search, arguments)):
        return None
    form, *values = arguments
    if "%" not in form.replace("%%", ""):
        return _unescaped(form).replace("%%", "%")
    rest = _unescaped(form.replace("%s", ""))
    if form.count("%s") == 1 and "%" not in rest and values:
        return "".join(_unescaped(form).replace("%s", value) for value in values)
    return None


def _unescaped(text: str) -> str:
    return _OUTPUT_PATTERNS["escape"].sub(lambda match: _ESCAPES[match[1]], text)


# -- searches: does the exit code mean "nothing found" or a failure? ---------------------------------------------------

_XARGS_SAYS = 123
"""GNU xargs exits so when a command that it ran exited with 1 to 125 (its manual, "Exit status")."""

_LOOKED_BACK = 8
"""Separators that are tried, from the last: most command lines have one, and none in quotes."""

Search = Literal["prints", "quiet"]
"""`quiet`: it prints nothing, prints into a file, or acts on its hits."""


def found_nothing(command: str, code: int) -> bool:
    """Return whether the exit code of a command that printed nothing means that its search found nothing."""
    last = _last(command)
    if last is None or search_mode(command) is None:
        return False
    return code == 1 or (code == _XARGS_SAYS and "xargs" in last[0])


def grep_decides_exit(command: str) -> bool:
    """Return whether the exit code is that of a last grep, whatever ran before it: it stands alone behind a `;`."""
    last = _last(command)
    words = _words(last)
    if last is None or last[2] or _OUTPUT_PATTERNS["stops_early"].search(command):
        return False
    if _runs_text(words):
        return len(simples(command)) == 1 and grep_decides_exit(words[-1])
    if program(words[0] if words else "") not in _OUTPUT_WORDS["greps"]:
        return False
    line = command.strip()
    # A `;` in quotes parts nothing: what follows that one is another command, or none.
    return any(
        simples(line[part.end() :]) == [last] for part in list(_OUTPUT_PATTERNS["parts"].finditer(line))[-_LOOKED_BACK:]
    )


def without_zero_counts(command: str, text: str) -> str:
    """Return the output without the zero counts of a search."""
    words = _words(_last(command))
    counts = program(words[0] if words else "") in _OUTPUT_WORDS["greps"] and any(
        map(_OUTPUT_PATTERNS["counts"].fullmatch, words[1:])
    )
    return _OUTPUT_PATTERNS["zero"].sub("", text) if counts else text


@lru_cache(maxsize=4096)
def search_mode(command: str) -> Search | None:
    """Return how the last simple command searches. None if it does not. A negated one (`! grep`) means the opposite."""
    last = _last(command)
    words = _words(last)
    if last is None or not words:
        return None
    if _runs_text(words):
        return search_mode(words[-1])
    name = program(words[0])
    if name not in _OUTPUT_WORDS["searches"]:
        return None
    options = set(words[1:])
    acts = name in ("find", "fd", "fdfind") and not options.isdisjoint(_OUTPUT_WORDS["acts"] | {"-x", "-X", "--exec"})
    return "quiet" if last[1] or acts or not options.isdisjoint(_OUTPUT_WORDS["quiet"]) else "prints"


def _words(last: Simple | None) -> list[str]:
    """Return the program and its arguments, `git grep` as `grep`; nothing for a negated command."""
    words = leading_words(last[0]) if last is not None and last[0][:1] != ["!"] else []
    if words and program(words[0]) == "git":
        verb = git_verb(words)
        return verb if verb[:1] == ["grep"] else []
    return words


def _runs_text(words: list[str]) -> bool:
    """Return whether words are a shell with its line (`bash -lc '…'`)."""
    return len(words) > 2 and words[-2] in _OUTPUT_WORDS["shell_text"] and program(words[0]) in _OUTPUT_WORDS["shells"]


@lru_cache(maxsize=4096)
def _last(command: str) -> Simple | None:
    return next((s for s in reversed(simple_commands(command)) if s[0] and not s[3]), None)


# -- polling (design/signals.md#waiting): waiting for something, or looking at its state, is no repetition -------------

_NAMED = (
    _OUTPUT_WORDS["waits"] | _OUTPUT_WORDS["polling_fetches"] | _OUTPUT_WORDS["many_verbs"] | {"tail", "get-content"}
)
_OF_LOGS = ("log", ".out", ".err", "nohup")
_LONGEST = 4_000
_PATH_CHARS = 300
"""The end of a path decides; one of a million characters costs no more."""


@lru_cache(maxsize=4096)
def is_polling(command: str) -> bool:
    """Return whether a command waits or looks at a state, and does nothing else: it names a known wait or a log, each
    program in it is a look or a filter, and it writes to no file but a log."""
    if len(command) > _LONGEST:
        return False
    looks = False
    for line, targets, _, _ in simple_commands(command):
        words = leading_words(line)
        name = program(words[0]).lower() if words else "echo"
        if any(not is_log(target) for target in targets):
            return False
        if _looks(name, words[1:]):
            looks = True
        elif name not in _OUTPUT_WORDS["filters"]:
            return False
    lowered = command.lower()
    return looks and (
        not _NAMED.isdisjoint(_OUTPUT_PATTERNS["words"].findall(lowered)) or any(part in lowered for part in _OF_LOGS)
    )


@lru_cache(maxsize=4096)
def is_log(path: str) -> bool:
    """Return whether a path is a log: what a program writes while it runs."""
    return _OUTPUT_PATTERNS["log"].search(path[-_PATH_CHARS:]) is not None


def _looks(name: str, arguments: list[str]) -> bool:
    """Return whether a program with these arguments waits for or asks about a state, and changes nothing."""
    if name in _OUTPUT_WORDS["many_verbs"]:
        # Such a program must only be asked for a state.
        if name == "nc":
            return any(a[:1] == "-" and "z" in a for a in arguments)
        if arguments[:1] == ["api"] and any(map(_OUTPUT_PATTERNS["fields"].match, arguments)):
            return False
        verbs = [name, *[a for a in arguments if a[:1] != "-"]]
        return (
            _OUTPUT_PATTERNS["state"].match(" ".join(verbs[:7])) is not None
            and _OUTPUT_PATTERNS["actions"].search(" ".join(verbs[:4])) is None
        )
    if name in _OUTPUT_WORDS["polling_fetches"]:
        return any(map(_OUTPUT_PATTERNS["health"].search, arguments)) and not any(
            map(_OUTPUT_PATTERNS["sends"].match, arguments)
        )
    if name in _OUTPUT_WORDS["polling_searches"]:
        arguments = [a for a in arguments if a[:1] != "-"][1:]
    if name in _OUTPUT_WORDS["readers"]:
        return any(map(is_log, arguments)) or (
            name in ("tail", "get-content") and any(map(_OUTPUT_PATTERNS["follows"].match, arguments))
        )
    return name in _OUTPUT_WORDS["waits"]


# -- text from outside of the working tree: other revisions, the network, installed packages ---------------------------

_LONGEST_PATH = 300
_STREAMS = {
    "unzip": deferred_pattern(r"-[a-z]*[pc]"),
    "bsdtar": deferred_pattern(r"-?\w*O"),
    "tar": deferred_pattern(r"-?\w*O\w*|--to-stdout"),
}


_LONGEST_COMMAND = 2_000


class Outside(Struct, frozen=True):
    """Origin of text outside the working tree, in the words of `origin`, and its source."""

    origin: EditOrigin
    source: str


@lru_cache(maxsize=1024)
def outside_sources(command: str) -> tuple[Outside, ...]:
    """Return the sources outside of the working tree that a command shows or copies text from."""
    shown: list[Outside] = []
    for words, *_ in simple_commands(command):
        words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
        name = words[0].rpartition("/")[2].lower() if words else ""
        if name == "git":
            shown += _of_git(git_verb(words))
        elif name in _OUTPUT_WORDS["fetchers"]:
            address = next((m[0] for w in words[1:] if (m := _OUTPUT_PATTERNS["address"].search(w))), None)
            if address is not None or name in ("gh", "glab"):
                shown.append(Outside("network", address or " ".join(words[:3])))
        elif name in _OUTPUT_WORDS["installers"] and not _OUTPUT_WORDS["gets"].isdisjoint(words[1:3]):
            packages = [w for w in operands(words)[1:] if w not in _OUTPUT_WORDS["gets"] and w[:1] not in "./"]
            shown += [Outside("package", " ".join(packages))] if packages else []
        elif name in _OUTPUT_WORDS["decompilers"]:
            shown.append(Outside("copied", words[-1]))
        elif name in _STREAMS and any(map(_STREAMS[name].fullmatch, words[1:])):
            shown += [Outside("package", word) for word in words[1:] if _OUTPUT_PATTERNS["archive"].search(word)]
    for text in (command, *split(command).heredocs.values()):
        if (
            _holds(text, _OUTPUT_WORDS["package_words"])
            and (named := _OUTPUT_PATTERNS["packages"].search(text)) is not None
        ):
            shown.append(Outside("package", named[0][:200]))
        shown += sources_in_code(text)
    return tuple(dict.fromkeys(shown))


def answer_paths(command: str) -> list[str]:
    """Return absolute paths with names like those of answers, and leftovers of a file. They may lie inside the
    working tree."""
    begin = command[:_LONGEST_COMMAND]
    lower = begin.lower()
    is_beside = _holds(lower, _OUTPUT_WORDS["beside_words"])
    # Without regard to capitals a pattern takes a few signs for letters that are none in lower case either.
    if not is_beside and begin.isascii() and not _holds(lower, _OUTPUT_WORDS["answer_words"]):
        return []
    paths = [
        path
        for path in _OUTPUT_PATTERNS["absolute"].findall(begin)
        if not _OUTPUT_PATTERNS["system"].match(path) and _OUTPUT_PATTERNS["answer"].search(path)
    ]
    return list(dict.fromkeys([*paths, *(_OUTPUT_PATTERNS["beside"].findall(begin) if is_beside else ())]))


def _holds(text: str, words: frozenset[str]) -> bool:
    return any(map(text.__contains__, words))


def sources_in_code(text: str) -> list[Outside]:
    """Return the sources outside of the working tree that code gets text from."""
    sources: list[Outside] = []
    if (
        "://" in text
        and _holds(text, _OUTPUT_WORDS["in_code"])
        and (address := _OUTPUT_PATTERNS["address"].search(text)) is not None
    ):
        sources.append(Outside("network", address[0]))
    if _holds(text, _OUTPUT_WORDS["loads"]) and (data_set := _OUTPUT_PATTERNS["data_set"].search(text)) is not None:
        sources.append(Outside("network", f"data set {data_set[1]}"))
    if "import" in text and (objects := _OUTPUT_PATTERNS["objects_outside"].search(text)) is not None:
        sources.append(Outside("repository", f"objects of the repository ({objects[0]})"))
    return sources


def _of_git(verb: list[str]) -> list[Outside]:
    """Return what a git command brings from outside: the network, or another revision."""
    if verb[:1] and verb[0] in ("fetch", "pull", "clone"):
        return [Outside("network", " ".join(verb[:3]))]
    if verb[:1] and (verb[0] in _OUTPUT_WORDS["of_all"] or verb[:2] == ["stash", "show"]):
        return [Outside("repository", " ".join(verb[:2]))]
    if not verb or verb[0] not in _OUTPUT_WORDS["shows_outside"]:
        return []
    named = next((w for w in verb[1:] if w in _OUTPUT_WORDS["all_refs"]), None)
    named_first = [
        w
        for w in operands(verb)[:1]
        if verb[0] in _OUTPUT_WORDS["revision_first"]
        and not _OUTPUT_PATTERNS["path"].search(w.partition(":")[0][-_LONGEST_PATH:])
    ]
    revisions = [r for w in operands(verb) if (r := later_revision(w, w in named_first))]
    return [Outside("repository", named or revisions[0])] if named or revisions else []


def later_revision(word: str, is_revision: bool = False) -> str:
    """Return the revision that a word names, if it need not be the base or an ancestor; else an empty text."""
    revision = word.partition(":")[0]
    if not revision or _OUTPUT_PATTERNS["base"].match(revision):
        return ""
    parts = [part for part in re.split(r"\.\.\.?", revision) if part and not _OUTPUT_PATTERNS["base"].match(part)]
    return revision if (is_revision and parts) or any(map(_OUTPUT_PATTERNS["revision"].fullmatch, parts)) else ""
