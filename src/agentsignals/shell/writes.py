"""Files that shell commands write, as far as their words tell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from agentsignals.model import EditOp
from agentsignals.shell.arguments import UNRESOLVED, Write, Writes, edited_in_place, in_place, names, operands, pairs
from agentsignals.shell.kinds import git_writes

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
    return [Write(path=path, op="modify", origin="copied", source=source) for source, path in pairs(operands(words))]


def moved(words: Sequence[str]) -> Writes:
    """`mv`: a file goes, the other comes."""
    writes: Writes = []
    for source, target in pairs(operands(words)):
        writes += [
            Write(path=source, op="delete"),
            Write(path=target, op="rename", origin="copied", source=source),
        ]
    return writes


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
        if (flags and not any(flag in words for flag in flags)) or not _CHECKS.isdisjoint(words):
            return []
        files = operands(words)[_SUBCOMMAND.get(words[0], 0) :]
        return [
            Write(path=w, op="modify", origin="program", source=words[0]) for w in files if posixpath.splitext(w)[1]
        ]

    return writes


_CHECKS = names("--check --check-only --diff --list-different")
_SUBCOMMAND = {"ruff": 1, "biome": 1, "deno": 1}


def _cmdlet(op: EditOp) -> Callable[[Sequence[str]], Writes]:
    valued = names("-value -encoding -itemtype -destination -name -newname")

    def writes(words: Sequence[str]) -> Writes:
        arguments = operands([w.lower() if w[:1] == "-" else w for w in words], valued)
        return [Write(path=arguments[0], op=op, origin="written")] if arguments else []

    return writes


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
        path = _stripped(old if new == _NULL else new, strip)
        if not UNRESOLVED(path):
            writes.append(Write(path=path, op=op, how="patch", new=body, origin=None if op == "delete" else "written"))
    return writes


def strip_of(words: list[str]) -> int:
    """Return the `-pN` of `patch` and `git apply`. Without it, names without `a/` stay as they are."""
    for word in words[1:]:
        if word[:2] == "-p" and word[2:].isdecimal() and len(word) < 5:
            return int(word[2:])
    return 1


def _stripped(name: str, strip: int) -> str:
    """A name that has none of Git's `a/` and `b/` is one already, whatever the default."""
    if strip == 1:
        return name[2:] if name[:2] in ("a/", "b/") else name
    return "/".join(name.split("/")[strip:]) or name
