"""What a shell command does: read, search, test, build, version control, write, or just run; and which files it writes.

The command is split into words and operators as a shell would (quotes, redirections, here-documents), never run and
never expanded: a path with a variable, glob or substitution in it is not resolved and not reported.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from agentsignals.model import EditOp, ShellKind

_LONG = 20_000
"""Commands are read up to this length; what follows is a here-document's body in practice."""

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1([^\n]*)\n(.*?)(?:\n[ \t]*\2[ \t]*(?=\n|\)|$)|\Z)", re.DOTALL)
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_WORD = re.compile(
    r"(?P<space>[ \t\r]+|\\\n)"
    r"|(?P<comment>(?<![^\s;&|(])#[^\n]*)"
    r"|(?P<redirect>(?:\d+|&)?>>?\|?(?:&\d+|&-)?|<<<|<&\d*|<)"
    r"|(?P<end>&&|\|\||;;|[;\n()&]|\|&?)"
    r"|(?P<word>'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\;|&<>()]+|['\"\\])",
    re.DOTALL,
)

_READ = frozenset("cat head tail less more nl wc bat batcat jq xxd od hexdump strings column".split())
_SEARCH = frozenset("rg grep egrep fgrep zgrep find ls fd fdfind tree ag ack locate which whereis stat file du".split())
_VCS = frozenset("git gh hg jj svn glab".split())
_WRAPPERS = frozenset("sudo time nohup command exec builtin env nice stdbuf caffeinate doas npx bunx pnpx".split())
_TEST = frozenset(
    "pytest py.test tox nox gotestsum vitest jest mocha rspec phpunit ctest ava bats behave nosetests playwright cypress".split()
)
_BUILD = frozenset(
    "tsc eslint prettier ruff black isort flake8 pylint mypy pyright golangci-lint gofmt goimports staticcheck biome oxlint"
    " clippy shellcheck make cmake ninja gcc g++ clang javac rustc webpack vite esbuild rollup turbo rubocop stylelint swc"
    " clang-format rustfmt swiftlint swiftformat ktlint".split()
)
_RUNNERS = frozenset("npm pnpm yarn bun deno mise just task cargo go gradle ./gradlew mvn ./mvnw dotnet swift mix rake".split())
_BUILD_WORDS = re.compile(r"^(?:build|lint|fmt|format|typecheck|type-check|vet|clippy|check|compile|tsc|generate)(?::|$|-)")
_TEST_WORDS = re.compile(r"^(?:t|test|tests|e2e|nextest|verify)(?::|$|-)|[:_-]tests?$")
_IN_PLACE = re.compile(r"^-(?:[a-zA-Z]*i|-in-place)")
_UNRESOLVED = re.compile(r"[$`*?{}]|^-|^[&|]")


class Command(Struct, frozen=True):
    """What a command does, the one file it is about (None when there is none, or several), and the files it writes."""

    kind: ShellKind
    path: str | None
    writes: tuple[tuple[str, EditOp], ...]


class _Simple(Struct):
    words: list[str]
    targets: list[str]


def classify(command: str) -> tuple[ShellKind, str | None]:
    """Kind of a command and the one file it is about."""
    parsed = parse(command)
    return parsed.kind, parsed.path


def written_paths(command: str) -> tuple[tuple[str, EditOp], ...]:
    """The files a command writes, as far as its text says, each with what happens to it."""
    return parse(command).writes


@lru_cache(maxsize=4096)
def parse(command: str) -> Command:
    """The whole reading of a command line, `bash -c '…'` included."""
    text = command[:_LONG]
    writes: dict[str, EditOp] = {}
    if "<<" in text:
        writes.update(_patched_files(text))
        text = _HEREDOC.sub(lambda m: f"< /dev/stdin {m.group(3)}\n", text)
    kinds: list[ShellKind] = []
    paths: list[str] = []
    folder = ""
    for simple in _simples(text):
        words = _unwrapped(simple.words)
        if not words:
            _add_targets(simple, folder, writes)
            continue
        if words[0] == "cd":
            folder = posixpath.join(folder, words[1]) if len(words) > 1 and not _UNRESOLVED.search(words[1]) else folder
            continue
        if words[0] in ("bash", "sh", "zsh") and len(words) > 2 and words[1].lstrip("-").rstrip("l").endswith("c"):
            inner = parse(words[2])
            kinds.append(inner.kind)
            writes.update({_joined(folder, p): op for p, op in inner.writes})
            continue
        written = dict(_written_by(words))
        writes.update({_joined(folder, p): op for p, op in written.items()})
        _add_targets(simple, folder, writes)
        kind = _kind(words)
        kinds.append("write" if written and kind == "run" else kind)
        if kind in ("read", "search"):
            paths.extend(_joined(folder, p) for p in _files_of(words, kind))
    kind = _strongest(kinds, bool(writes))
    if kind == "write":
        paths = list(writes)
    return Command(kind, paths[0] if len(set(paths)) == 1 else None, tuple(writes.items()))


def _strongest(kinds: list[ShellKind], writes: bool) -> ShellKind:
    """Order of signals_notes section 3: test, build, vcs, then a writer is no reader, then whatever comes first."""
    for kind in ("test", "build", "vcs"):
        if kind in kinds:
            return kind  # type: ignore[return-value]  # a member of the tuple above is a ShellKind
    if writes or "write" in kinds:
        return "write"
    for found in kinds:
        if found in ("read", "search"):
            return found
    return "run"


def _simples(text: str) -> Iterator[_Simple]:
    """The simple commands of a line: their words, and the targets of output redirections."""
    current = _Simple([], [])
    pieces: list[str] = []
    redirect = ""
    for match in _WORD.finditer(text + "\n"):
        kind = match.lastgroup
        if kind == "word":
            pieces.append(_unquoted(match.group()))
            continue
        if pieces:
            word = "".join(pieces)
            pieces = []
            if redirect:
                if ">" in redirect and not word.startswith("/dev/"):
                    current.targets.append(word)
                redirect = ""
            elif not (kind == "redirect" and word.isdigit()):
                current.words.append(word)
        if kind == "redirect":
            found = match.group()
            redirect = "" if found.endswith(("&-",)) or re.search(r"&\d+$", found) else found
        elif kind == "end":
            if current.words or current.targets:
                yield current
            current = _Simple([], [])


def _unquoted(piece: str) -> str:
    if len(piece) > 1 and piece[0] == piece[-1] and piece[0] in "'\"":
        return piece[1:-1]
    return piece[1:] if piece.startswith("\\") and len(piece) > 1 else piece


def _unwrapped(words: list[str]) -> list[str]:
    """The words without assignments, `sudo`-like wrappers, `timeout N`, `uv run`, `python -m`."""
    n = 0
    while n < len(words):
        word = words[n]
        if re.match(r"^[A-Za-z_]\w*=", word) or word in _WRAPPERS:
            n += 1
            while n < len(words) and word in _WRAPPERS and words[n].startswith("-"):
                n += 1
        elif word in ("timeout", "gtimeout") and n + 1 < len(words):
            n += 1
            while n < len(words) and (words[n].startswith("-") or re.match(r"^\d+[smhd]?$", words[n])):
                n += 1
        elif word in ("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "bundle") and words[n + 1 : n + 2] in (["run"], ["exec"]):
            n += 2
        elif re.match(r"^(?:\S*/)?python[\d.]*$", word) and words[n + 1 : n + 2] == ["-m"]:
            n += 2
        else:
            break
    return words[n:]


def _kind(words: list[str]) -> ShellKind:
    name = posixpath.basename(words[0])
    rest = [w for w in words[1:] if not w.startswith("-")]
    if name in _TEST or (name == "unittest"):
        return "test"
    if name in ("make", "just", "task", "mise", "rake") or name in _RUNNERS or words[0] in _RUNNERS:
        return _runner_kind(name, rest)
    if name in _VCS:
        return "vcs"
    if name in _BUILD:
        return "build"
    if name == "sed":
        return "run" if any(_IN_PLACE.match(w) for w in words[1:]) else "read"
    if name in _READ:
        return "read"
    if name in _SEARCH:
        return "run" if name == "find" and ("-delete" in words or "-exec" in words) else "search"
    return "run"


def _runner_kind(name: str, rest: list[str]) -> ShellKind:
    """What `npm run test:unit`, `go vet`, `make check`, `cargo nextest` are for."""
    first = next((w for w in rest if w not in ("run", "exec", "x", "dlx", "workspace")), "")
    if _TEST_WORDS.search(first) or first in _TEST or (name in ("make", "just", "mise") and first.startswith(("test", "check"))):
        return "test"
    if name in ("make", "gradle", "mvn", "gradlew", "mvnw") or _BUILD_WORDS.search(first) or first in _BUILD:
        return "build"
    return "run"


def _files_of(words: list[str], kind: ShellKind) -> list[str]:
    """The operands that look like files: of a reader all, of a searcher those with an extension."""
    operands = [w for w in words[1:] if not _UNRESOLVED.search(w)]
    if words[0] == "sed":
        operands = operands[1:] if "-e" not in words else operands
    if kind == "search":
        if words[0] in ("rg", "grep", "egrep", "fgrep", "ag", "ack"):
            operands = operands[1:]
        return [w for w in operands if posixpath.splitext(w)[1]]
    return [w for w in operands if not w.isdigit() and ("/" in w or "." in w)]


def _add_targets(simple: _Simple, folder: str, writes: dict[str, EditOp]) -> None:
    for target in simple.targets:
        if not _UNRESOLVED.search(target):
            writes.setdefault(_joined(folder, target), "modify")


def _written_by(words: list[str]) -> Iterator[tuple[str, EditOp]]:
    """The files that the command itself (not its redirections) writes."""
    name = posixpath.basename(words[0])
    operands = [w for w in words[1:] if not w.startswith("-") and not _UNRESOLVED.search(w)]
    ops: list[tuple[str, EditOp]] = []
    if name == "tee":
        ops = [(w, "modify") for w in operands]
    elif name in ("sed", "perl", "ruby") and any(_IN_PLACE.match(w) or re.match(r"^-p?i", w) for w in words[1:]):
        ops = [(w, "modify") for w in operands if "/" in w or "." in w and not re.match(r"^[sy](\W).*\1", w)]
        ops = [(w, op) for w, op in ops if not re.match(r"^(?:\d+(?:,\d+)?)?[sydaic](?:\W|$)", w) or w.startswith(("./", "/"))]
    elif name == "touch":
        ops = [(w, "create") for w in operands]
    elif name in ("rm", "unlink"):
        ops = [(w, "delete") for w in operands]
    elif name == "cp" and len(operands) > 1:
        ops = [(operands[-1], "modify")]
    elif name == "mv" and len(operands) > 1:
        ops = [(operands[0], "delete"), (operands[-1], "rename")]
    elif name in ("gofmt", "goimports", "prettier", "black") and ("-w" in words or "--write" in words or name == "black"):
        ops = [(w, "modify") for w in operands if posixpath.splitext(w)[1]]
    elif name == "git" and words[1:2] in (["rm"], ["mv"], ["restore"]) and len(operands) > 1:
        ops = _git_writes(words[1], operands[1:])
    elif name == "git" and words[1:2] == ["checkout"] and "--" in words:
        ops = [(w, "modify") for w in words[words.index("--") + 1 :] if not _UNRESOLVED.search(w)]
    return iter([(w, op) for w, op in ops if not w.startswith("/dev/")])


def _git_writes(verb: str, operands: list[str]) -> list[tuple[str, EditOp]]:
    if verb == "rm":
        return [(w, "delete") for w in operands]
    if verb == "mv" and len(operands) > 1:
        return [(operands[0], "delete"), (operands[-1], "rename")]
    return [(w, "modify") for w in operands if verb == "restore"]


def _patched_files(text: str) -> dict[str, EditOp]:
    """Files named by `apply_patch` envelopes inside a here-document."""
    if "*** Begin Patch" not in text:
        return {}
    ops: dict[str, EditOp] = {"Add": "create", "Update": "modify", "Delete": "delete"}  # type: ignore[dict-item]  # literals
    return {
        (m.group(2) or m.group(3)).strip(): ops[m.group(1)] if m.group(1) else "rename" for m in _PATCH_FILE.finditer(text)
    }


def _joined(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path)) if folder else path
