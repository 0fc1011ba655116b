"""The text that a command prints, or the origin of that text, for the file that its output goes into."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agentsignals.model import EditOrigin
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell.kinds import git_verb, leading_words
from agentsignals.shell.tokens import (
    UNRESOLVED,
    Simple,
    operands,
    patterns,
    program,
    simple_commands,
    simples,
    split,
    vocabulary,
)

_WORDS = vocabulary("outputs")
_PATTERNS = patterns("outputs")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "r": "\r"}


class Output(Struct, frozen=True, gc=False):
    """A text (None if unknown) and its origin."""

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
    if name in _WORDS["fetches"]:
        return Output(None, "network", next((w for w in words[1:] if "://" in w), name))
    if name == "git":
        verb = git_verb(words)
        if verb[:1] and verb[0] in _WORDS["shows"]:
            shown = next((w for w in verb[1:] if w[:1] != "-" and w not in _WORDS["objects"]), verb[0])
            return Output(None, "repository", shown)
    if input_ is not None and (name == "tee" or (name == "cat" and not operands(words))):
        return input_
    if name == "cat" and len(files := operands(words)) == 1 and not UNRESOLVED(files[0]):
        return Output(None, "copied", files[0])
    if input_ is not None and name in _WORDS["passes_on"] and input_.origin != "written":
        return Output(None, input_.origin, input_.source)
    return Output(None, "program", name or None)


def _echoed(words: Sequence[str]) -> str | None:
    n, escapes, ends = 1, False, "\n"
    while n < len(words) and re.fullmatch(r"-[neE]+", words[n]):
        ends, escapes = "" if "n" in words[n] else ends, escapes or "e" in words[n]
        n += 1
    text = " ".join(words[n:])
    if _PATTERNS["expanded"].search(text):
        return None
    return (_unescaped(text) if escapes else text) + ends


def _formatted(words: Sequence[str]) -> str | None:
    arguments = list(words[2:] if words[1:2] == ["--"] else words[1:])
    if not arguments or any(map(_PATTERNS["expanded"].search, arguments)):
        return None
    form, *values = arguments
    if "%" not in form.replace("%%", ""):
        return _unescaped(form).replace("%%", "%")
    rest = _unescaped(form.replace("%s", ""))
    if form.count("%s") == 1 and "%" not in rest and values:
        return "".join(_unescaped(form).replace("%s", value) for value in values)
    return None


def _unescaped(text: str) -> str:
    return _PATTERNS["escape"].sub(lambda match: _ESCAPES[match[1]], text)


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
    if last is None or last[2] or _PATTERNS["stops_early"].search(command):
        return False
    if _runs_text(words):
        return len(simples(command)) == 1 and grep_decides_exit(words[-1])
    if program(words[0] if words else "") not in _WORDS["greps"]:
        return False
    line = command.strip()
    # A `;` in quotes parts nothing: what follows that one is another command, or none.
    return any(
        simples(line[part.end() :]) == [last] for part in list(_PATTERNS["parts"].finditer(line))[-_LOOKED_BACK:]
    )


def without_zero_counts(command: str, text: str) -> str:
    """Return the output without the zero counts of a search."""
    words = _words(_last(command))
    counts = program(words[0] if words else "") in _WORDS["greps"] and any(
        map(_PATTERNS["counts"].fullmatch, words[1:])
    )
    return _PATTERNS["zero"].sub("", text) if counts else text


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
    if name not in _WORDS["searches"]:
        return None
    options = set(words[1:])
    acts = name in ("find", "fd", "fdfind") and not options.isdisjoint(_WORDS["acts"] | {"-x", "-X", "--exec"})
    return "quiet" if last[1] or acts or not options.isdisjoint(_WORDS["quiet"]) else "prints"


def _words(last: Simple | None) -> list[str]:
    """Return the program and its arguments, `git grep` as `grep`; nothing for a negated command."""
    words = leading_words(last[0]) if last is not None and last[0][:1] != ["!"] else []
    if words and program(words[0]) == "git":
        verb = git_verb(words)
        return verb if verb[:1] == ["grep"] else []
    return words


def _runs_text(words: list[str]) -> bool:
    """Return whether words are a shell with its line (`bash -lc '…'`)."""
    return len(words) > 2 and words[-2] in _WORDS["shell_text"] and program(words[0]) in _WORDS["shells"]


@lru_cache(maxsize=4096)
def _last(command: str) -> Simple | None:
    return next((s for s in reversed(simple_commands(command)) if s[0] and not s[3]), None)


# -- polling (design/signals.md#waiting): waiting for something, or looking at its state, is no repetition -------------

_NAMED = _WORDS["waits"] | _WORDS["polling_fetches"] | _WORDS["many_verbs"] | {"tail", "get-content"}
_OF_LOGS = ("log", ".out", ".err", "nohup")
_LONGEST = 4_000
_PATH_CHARS = 300
"""The end of a path decides; one of a million characters costs no more."""


@lru_cache(maxsize=4096)
def is_polling(command: str) -> bool:
    """Return whether a line waits or looks at a state, and does nothing else."""
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
        elif name not in _WORDS["filters"]:
            return False
    lowered = command.lower()
    return looks and (
        not _NAMED.isdisjoint(_PATTERNS["words"].findall(lowered)) or any(part in lowered for part in _OF_LOGS)
    )


@lru_cache(maxsize=4096)
def is_log(path: str) -> bool:
    """Return whether a path is a log: what a program writes while it runs."""
    return _PATTERNS["log"].search(path[-_PATH_CHARS:]) is not None


def _looks(name: str, arguments: list[str]) -> bool:
    if name in _WORDS["many_verbs"]:
        # Such a program must only be asked for a state.
        if name == "nc":
            return any(a[:1] == "-" and "z" in a for a in arguments)
        if arguments[:1] == ["api"] and any(map(_PATTERNS["fields"].match, arguments)):
            return False
        verbs = [name, *[a for a in arguments if a[:1] != "-"]]
        return (
            _PATTERNS["state"].match(" ".join(verbs[:7])) is not None
            and _PATTERNS["actions"].search(" ".join(verbs[:4])) is None
        )
    if name in _WORDS["polling_fetches"]:
        return any(map(_PATTERNS["health"].search, arguments)) and not any(map(_PATTERNS["sends"].match, arguments))
    if name in _WORDS["polling_searches"]:
        arguments = [a for a in arguments if a[:1] != "-"][1:]
    if name in _WORDS["readers"]:
        return any(map(is_log, arguments)) or (
            name in ("tail", "get-content") and any(map(_PATTERNS["follows"].match, arguments))
        )
    return name in _WORDS["waits"]


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
        elif name in _WORDS["fetchers"]:
            address = next((m[0] for w in words[1:] if (m := _PATTERNS["address"].search(w))), None)
            if address is not None or name in ("gh", "glab"):
                shown.append(Outside("network", address or " ".join(words[:3])))
        elif name in _WORDS["installers"] and not _WORDS["gets"].isdisjoint(words[1:3]):
            packages = [w for w in operands(words)[1:] if w not in _WORDS["gets"] and w[:1] not in "./"]
            shown += [Outside("package", " ".join(packages))] if packages else []
        elif name in _WORDS["decompilers"]:
            shown.append(Outside("copied", words[-1]))
        elif name in _STREAMS and any(map(_STREAMS[name].fullmatch, words[1:])):
            shown += [Outside("package", word) for word in words[1:] if _PATTERNS["archive"].search(word)]
    for text in (command, *split(command).heredocs.values()):
        if _holds(text, _WORDS["package_words"]) and (named := _PATTERNS["packages"].search(text)) is not None:
            shown.append(Outside("package", named[0][:200]))
        shown += sources_in_code(text)
    return tuple(dict.fromkeys(shown))


def answer_paths(command: str) -> list[str]:
    """Return absolute paths with names like those of answers, and leftovers of a file. They may lie inside the
    working tree."""
    begin = command[:_LONGEST_COMMAND]
    lower = begin.lower()
    is_beside = _holds(lower, _WORDS["beside_words"])
    # Without regard to capitals a pattern takes a few signs for letters that are none in lower case either.
    if not is_beside and begin.isascii() and not _holds(lower, _WORDS["answer_words"]):
        return []
    paths = [
        path
        for path in _PATTERNS["absolute"].findall(begin)
        if not _PATTERNS["system"].match(path) and _PATTERNS["answer"].search(path)
    ]
    return list(dict.fromkeys([*paths, *(_PATTERNS["beside"].findall(begin) if is_beside else ())]))


def _holds(text: str, words: frozenset[str]) -> bool:
    return any(map(text.__contains__, words))


def sources_in_code(text: str) -> list[Outside]:
    """Return the sources outside of the working tree that code gets text from."""
    sources: list[Outside] = []
    if "://" in text and _holds(text, _WORDS["in_code"]) and (address := _PATTERNS["address"].search(text)) is not None:
        sources.append(Outside("network", address[0]))
    if _holds(text, _WORDS["loads"]) and (data_set := _PATTERNS["data_set"].search(text)) is not None:
        sources.append(Outside("network", f"data set {data_set[1]}"))
    if "import" in text and (objects := _PATTERNS["objects_outside"].search(text)) is not None:
        sources.append(Outside("repository", f"objects of the repository ({objects[0]})"))
    return sources


def _of_git(verb: list[str]) -> list[Outside]:
    if verb[:1] and verb[0] in ("fetch", "pull", "clone"):
        return [Outside("network", " ".join(verb[:3]))]
    if verb[:1] and (verb[0] in _WORDS["of_all"] or verb[:2] == ["stash", "show"]):
        return [Outside("repository", " ".join(verb[:2]))]
    if not verb or verb[0] not in _WORDS["shows_outside"]:
        return []
    named = next((w for w in verb[1:] if w in _WORDS["all_refs"]), None)
    named_first = [
        w
        for w in operands(verb)[:1]
        if verb[0] in _WORDS["revision_first"] and not _PATTERNS["path"].search(w[-_LONGEST_PATH:])
    ]
    revisions = [r for w in operands(verb) if (r := later_revision(w, w in named_first))]
    return [Outside("repository", named or revisions[0])] if named or revisions else []


def later_revision(word: str, is_revision: bool = False) -> str:
    """Return the revision that a word names, if it need not be the base or an ancestor; else an empty text."""
    revision = word.partition(":")[0]
    if not revision or _PATTERNS["base"].match(revision):
        return ""
    parts = [part for part in re.split(r"\.\.\.?", revision) if part and not _PATTERNS["base"].match(part)]
    return revision if (is_revision and parts) or any(map(_PATTERNS["revision"].fullmatch, parts)) else ""
