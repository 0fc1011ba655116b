"""Files that shell commands write, as far as their words tell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from agentsignals.model import EditOp
from agentsignals.shell.arguments import (
    UNRESOLVED,
    WHOLE_TREE,
    Write,
    Writes,
    edited_in_place,
    in_place,
    names,
    operands,
    pairs,
    patterns,
    vocabulary,
)
from agentsignals.shell.kinds import git_verb

_PATCH_FILE = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|(Move to)): (.+?)\s*$", re.MULTILINE)
_PATCH_OPS: dict[str, EditOp] = {"Add": "create", "Update": "modify", "Delete": "delete"}


def patched_files(command: str) -> Writes:
    """Return the files named by an `apply_patch` envelope."""
    return [
        Write(path=m[2], op=_PATCH_OPS[m[0]] if m[0] else "rename", origin="written")
        for m in _PATCH_FILE.findall(command)
    ]


def _edited_in_place(words: Sequence[str]) -> Writes:
    return edited_in_place(words) if in_place(words) else []


def _all(op: EditOp, *valued: str) -> Callable[[Sequence[str]], Writes]:
    with_value = frozenset(valued)
    return lambda words: [
        Write(path=w, op=op, origin="program" if op == "modify" else None, source=words[0] if op == "modify" else None)
        for w in operands(words, with_value)
    ]


def _copied(words: Sequence[str]) -> Writes:
    """`cp`, and `install`, some of whose options take a value."""
    files = operands(words, names("-m -o -g -S --mode --owner --group --suffix" if words[0] == "install" else ""))
    return [Write(path=path, op="modify", origin="copied", source=source) for source, path in pairs(files)]


def moved(words: Sequence[str]) -> Writes:
    """`mv`: a file goes, the other comes."""
    return [
        write
        for source, target in pairs(operands(words))
        for write in (Write(path=source, op="delete"), Write(path=target, op="rename", origin="copied", source=source))
    ]


def _fetched(output: str, named: str) -> Callable[[Sequence[str]], Writes]:
    """`curl -o FILE URL`, `wget URL`."""
    outputs, keeps_name = names(output), names(named)

    def writes(words: Sequence[str]) -> Writes:
        address = next((w for w in words[1:] if "://" in w), None)
        path = next((words[n + 1] for n, w in enumerate(words[:-1]) if w in outputs), None)
        if path is None and address is not None and (not keeps_name or not keeps_name.isdisjoint(words)):
            path = posixpath.basename(address.partition("?")[0].rstrip("/"))
        return [Write(path=path, op="modify", origin="network", source=address)] if path else []

    return writes


def _installed(words: Sequence[str]) -> Writes:
    """`pip install --target FOLDER`. Other changes of an installer are not in its words."""
    if "install" not in words:
        return []
    folder = next((words[n + 1] for n, w in enumerate(words[:-1]) if w in ("-t", "--target")), None)
    packages = operands(words, names("-t --target -r -c -i --index-url"))[1:]
    return [Write(path=folder, op="modify", origin="package", source=" ".join(packages) or None)] if folder else []


def _formatted(*flags: str) -> Callable[[Sequence[str]], Writes]:
    def writes(words: Sequence[str]) -> Writes:
        if (flags and not any(flag in words for flag in flags)) or not _WORDS["checks"].isdisjoint(words):
            return []
        files = operands(words)[_SUBCOMMAND.get(words[0], 0) :]
        return [
            Write(path=w, op="modify", origin="program", source=words[0]) for w in files if posixpath.splitext(w)[1]
        ]

    return writes


_WORDS = vocabulary("writes")
_PATTERNS = patterns("writes")
_SUBCOMMAND = {"ruff": 1, "biome": 1, "deno": 1}


def _cmdlet(op: EditOp) -> Callable[[Sequence[str]], Writes]:
    valued = names("-value -encoding -itemtype -destination -name -newname")

    def writes(words: Sequence[str]) -> Writes:
        arguments = operands([w.lower() if w[:1] == "-" else w for w in words], valued)
        return [Write(path=arguments[0], op=op, origin="written")] if arguments else []

    return writes


# -- files that `git` changes ------------------------------------------------------------------------------------------

STASHED, UNSTASHED = "HEAD", "stash"


def git_writes(words: Sequence[str]) -> Writes:
    """Return files that are deleted, moved, or reset to a state of the repository.

    Changing the commit of the tree (`git switch`, `git pull`, `git rebase`) is no edit: it brings the work of others,
    which their commits record.
    """
    if _WORDS["changes"].isdisjoint(words):
        return []
    verb, *rest = git_verb(words) or [""]
    arguments = operands([verb, *rest], _WORDS["source"])
    if verb == "rm" and "--cached" not in rest:
        return [Write(path=w, op="delete") for w in arguments]
    if verb == "mv":
        return moved([verb, *arguments])
    if verb == "restore" and (_WORDS["staged"].isdisjoint(rest) or "--worktree" in rest):
        named = (after for word, after in pairwise(rest) if word in _WORDS["source"])
        joined = (word[len("--source=") :] for word in rest if word.startswith("--source="))
        return _reset(arguments, next(named, "") or next(joined, "") or "index")
    if verb == "checkout":
        if "--" in rest:
            at = rest.index("--")
            return _reset(rest[at + 1 :], next((w for w in rest[:at] if w[:1] != "-"), "index"))
        if not _WORDS["branches"].isdisjoint(rest):
            return []
        if not {"--ours", "--theirs"}.isdisjoint(rest):
            return _reset(arguments, "ours" if "--ours" in rest else "theirs")
        if len(arguments) > 1 and not any(map(_PATTERNS["in_tree"].fullmatch, arguments[:1])):
            return _reset(arguments[1:], arguments[0])
        return _reset([w for w in arguments if _PATTERNS["in_tree"].fullmatch(w)], "index")
    if verb == "stash":
        verb = next((w for w in rest if w[:1] != "-"), "push")
        if verb in ("pop", "apply"):
            return _reset([WHOLE_TREE], UNSTASHED)
        if verb not in ("push", "save") and "--" not in rest:
            return []
        return _reset(rest[rest.index("--") + 1 :] if "--" in rest else [WHOLE_TREE], STASHED)
    return _reset([WHOLE_TREE], arguments[0] if arguments else "HEAD") if not _WORDS["hard"].isdisjoint(rest) else []


def _reset(paths: list[str], revision: str) -> Writes:
    return [Write(path=path, op="modify", origin="repository", source=revision) for path in paths]


WRITERS: dict[str, Callable[[Sequence[str]], Writes]] = {
    "tee": _all("modify"),
    "touch": _all("create", "-d", "-t", "-r"),
    "truncate": _all("modify", "-s", "-r"),
    "rm": _all("delete"),
    "unlink": _all("delete"),
    "cp": _copied,
    "mv": moved,
    "sed": _edited_in_place,
    "gsed": _edited_in_place,
    "perl": _edited_in_place,
    "ruby": _edited_in_place,
    "git": git_writes,
    "install": _copied,
    "curl": _fetched("-o --output", "-O --remote-name"),
    "wget": _fetched("-O --output-document", ""),
    "pip": _installed,
    "pip3": _installed,
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
"""Files that each command writes, by its name; PowerShell names in lower case."""


def written_by(words: Sequence[str], name: str) -> Writes:
    """Return the files that a command itself writes, without redirections and words that a shell would expand."""
    writer = WRITERS.get(name)
    if writer is None:
        return []
    return [w for w in writer(words) if not UNRESOLVED(w.path) and not w.path.startswith("/dev/")]


# -- diffs that a command applies --------------------------------------------------------------------------------------

_FILE = re.compile(r"^--- (?P<old>[^\t\n]+)[^\n]*\n\+\+\+ (?P<new>[^\t\n]+)[^\n]*\n(?=@@ )", re.MULTILINE)
_NEXT = re.compile(r"^(?:diff |Index: )", re.MULTILINE)
_NULL = "/dev/null"


def diff_writes(text: str, strip: int = 1) -> Writes:
    """Return the writes of a unified diff. `strip` is the number of leading folders that `-p` removes."""
    writes: Writes = []
    files = list(_FILE.finditer(text))
    for n, match in enumerate(files):
        stop = files[n + 1].start() if n + 1 < len(files) else len(text)
        body = text[match.end() : stop]
        # The header of the next file may begin before its `---`.
        later = _NEXT.search(body)
        body = body[: later.start()] if later is not None and n + 1 < len(files) else body
        old, new = match["old"].strip(), match["new"].strip()
        op: EditOp = "create" if old == _NULL else "delete" if new == _NULL else "modify"
        path = old if new == _NULL else new
        if strip != 1:
            path = "/".join(path.split("/")[strip:]) or path
        elif path[:2] in ("a/", "b/"):  # a name that has none of Git's `a/` and `b/` is one already
            path = path[2:]
        if not UNRESOLVED(path):
            writes.append(Write(path=path, op=op, how="patch", new=body, origin=None if op == "delete" else "written"))
    return writes


def strip_of(words: list[str]) -> int:
    """Return the `-pN` of `patch` and `git apply`. Without it, names without `a/` stay as they are."""
    return next((int(w[2:]) for w in words[1:] if w[:2] == "-p" and w[2:].isdecimal() and len(w) < 5), 1)
