"""The files that shell commands write, as far as the words of the command say."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from agentsignals.model import EditOp

Writes = list[tuple[str, EditOp]]

UNRESOLVED = re.compile(r"[-&|]|\Z|[^$`*?{}\n]*+[$`*?{}\n]").match
"""A word the shell would expand, or no path at all: never reported."""

_IN_PLACE = re.compile(r"-(?:[a-zA-Z]*i|-in-place)").match
_PERL_IN_PLACE = re.compile(r"-[0-9lpnaws]*i").match
_CLUSTER = re.compile(r"-[a-zA-Z0-9]*e$").match
"""Short options ending in `e`: what follows is the script, as after `-e`."""
_PATCH_FILE = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|(Move to)): (.+?)\s*$", re.MULTILINE)
_PATCH_OPS: dict[str, EditOp] = {"Add": "create", "Update": "modify", "Delete": "delete"}


def names(text: str) -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split())


_GIT_VALUED = names("-C -c --git-dir --work-tree --namespace")


def operands(words: Sequence[str], valued: frozenset[str] = frozenset()) -> list[str]:
    """The words after the first that are no options, nor the value of an option in `valued`."""
    kept: list[str] = []
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word[:1] == "-" and word != "-":
            skip = word in valued
        else:
            kept.append(word)
    return kept


def patched_files(command: str) -> Writes:
    """Files named by an `apply_patch` envelope."""
    return [(m[2], _PATCH_OPS[m[0]] if m[0] else "rename") for m in _PATCH_FILE.findall(command)]


def in_place(words: Sequence[str]) -> bool:
    """Whether `sed` or `perl`-like words change their files."""
    edits = _IN_PLACE if words[0].endswith("sed") else _PERL_IN_PLACE
    return any(map(edits, [word for word in words if word[:1] == "-" and "i" in word]))


def script_files(words: Sequence[str]) -> list[str]:
    """The files of `sed SCRIPT FILE...` or `sed -e SCRIPT FILE...`; the empty word of a macOS `-i ''` is no script."""
    files: list[str] = []
    named = valued = False
    for word in words[1:]:
        if valued:
            valued = False
        elif word[:1] == "-" and word != "-":
            valued = word in _SCRIPT_OPTIONS or (word[-1] == "e" and _CLUSTER(word) is not None)
            named = named or valued or word.startswith(("--expression=", "--file="))
        elif word:
            files.append(word)
    return files if named else files[1:]


_SCRIPT_OPTIONS = names("-e -f --expression --file")


def _edited_in_place(words: Sequence[str]) -> Writes:
    return [(w, "modify") for w in script_files(words)] if in_place(words) else []


def _all(op: EditOp, *valued: str) -> Callable[[Sequence[str]], Writes]:
    with_value = frozenset(valued)
    return lambda words: [(w, op) for w in operands(words, with_value)]


def _copied(words: Sequence[str]) -> Writes:
    return [(path, "modify") for _, path in _pairs(operands(words))]


def _moved(words: Sequence[str]) -> Writes:
    writes: Writes = []
    for source, target in _pairs(operands(words)):
        writes += [(source, "delete"), (target, "rename")]
    return writes


def _pairs(paths: list[str]) -> list[tuple[str, str]]:
    """Sources with where they go; several sources, or a last operand that is plainly a folder, go into a folder."""
    *sources, last = paths or [""]
    if len(sources) > 1 or last.endswith("/") or last in (".", ".."):
        return [(s, posixpath.join(last, posixpath.basename(s.rstrip("/")))) for s in sources if not UNRESOLVED(s)]
    return [(s, last) for s in sources]


def _formatted(*flags: str) -> Callable[[Sequence[str]], Writes]:
    def writes(words: Sequence[str]) -> Writes:
        if (flags and not any(flag in words for flag in flags)) or not _CHECKS.isdisjoint(words):
            return []
        return [(w, "modify") for w in operands(words)[_SUBCOMMAND.get(words[0], 0) :] if posixpath.splitext(w)[1]]

    return writes


_CHECKS = names("--check --check-only --diff --list-different")
_SUBCOMMAND = {"ruff": 1, "biome": 1, "deno": 1}


def _git_words(words: Sequence[str]) -> list[str]:
    """`git` words from the verb on, global options left out."""
    n = 1
    while n < len(words) and words[n][:1] == "-":
        n += 2 if words[n] in _GIT_VALUED else 1
    return list(words[n:])


_GIT_WRITERS = names("rm mv restore checkout")
_GIT_SOURCE = names("-s --source")
_STAGED = names("--staged -S")


def _git(words: Sequence[str]) -> Writes:
    if _GIT_WRITERS.isdisjoint(words):
        return []
    verb, *rest = _git_words(words) or [""]
    arguments = operands([verb, *rest], _GIT_SOURCE)
    if verb == "rm" and "--cached" not in rest:
        return [(w, "delete") for w in arguments]
    if verb == "mv":
        return _moved([verb, *rest])
    if verb == "restore" and (_STAGED.isdisjoint(rest) or "--worktree" in rest):
        return [(w, "modify") for w in arguments]
    if verb == "checkout" and "--" in rest:
        return [(w, "modify") for w in rest[rest.index("--") + 1 :]]
    return []


def _cmdlet(op: EditOp) -> Callable[[Sequence[str]], Writes]:
    valued = names("-value -encoding -itemtype -destination -name -newname")

    def writes(words: Sequence[str]) -> Writes:
        arguments = operands([w.lower() if w[:1] == "-" else w for w in words], valued)
        return [(arguments[0], op)] if arguments else []

    return writes


WRITERS: dict[str, Callable[[Sequence[str]], Writes]] = {
    "tee": _all("modify"),
    "touch": _all("create", "-d", "-t", "-r"),
    "truncate": _all("modify", "-s", "-r"),
    "rm": _all("delete"),
    "unlink": _all("delete"),
    "cp": _copied,
    "mv": _moved,
    "sed": _edited_in_place,
    "gsed": _edited_in_place,
    "perl": _edited_in_place,
    "ruby": _edited_in_place,
    "git": _git,
    "gofmt": _formatted("-w"),
    "goimports": _formatted("-w"),
    "prettier": _formatted("--write", "-w"),
    "clang-format": _formatted("-i"),
    "eslint": _formatted("--fix"),
    "biome": _formatted("--write", "--fix", "--apply"),
    "ruff": _formatted("format", "--fix"),
    "black": _formatted(),
    "isort": _formatted(),
    "rustfmt": _formatted(),
    "set-content": _cmdlet("modify"),
    "add-content": _cmdlet("modify"),
    "out-file": _cmdlet("modify"),
    "new-item": _cmdlet("create"),
    "remove-item": _cmdlet("delete"),
}
"""What each command writes, by its name; a name of PowerShell in lower case."""


def written_by(words: Sequence[str], name: str) -> Writes:
    """The files a command itself (not its redirections) writes; what a shell would still expand is left out."""
    writer = WRITERS.get(name)
    if writer is None:
        return []
    return [(w, op) for w, op in writer(words) if not UNRESOLVED(w) and not w.startswith("/dev/")]
