"""Where the text comes from that a command shows, when that is not the working tree: the repository's other states, the
network, an installed package."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from agentsignals.model import EditOrigin
from agentsignals.patterns import deferred_pattern
from agentsignals.shell.git_commands import git_verb
from agentsignals.shell.kinds import leading_words
from agentsignals.shell.tokens import simple_commands, split
from agentsignals.shell.writing import names, operands

_FETCHERS = names("curl wget http https xh aria2c lynx w3m gh glab iwr irm invoke-webrequest invoke-restmethod")
_INSTALLERS = names("pip pip3 uv npm pnpm yarn cargo gem go")
_GETS = names("download install pack view add get")
_SHOWS = names("show diff log cat-file checkout restore cherry-pick archive blame grep merge rebase read-tree worktree")
_REVISION_FIRST = names("show cherry-pick cat-file archive")
_PATH = deferred_pattern(r"^[^:]*(?:/[^/:]*\.\w+|\.\w{1,4})$|^\d+$|^(?:-p|blob|tree|commit)$")
_LONGEST_PATH = 300
_ALL_REFS = names("--all --branches --remotes --reflog -g --tags")
_OF_ALL = names("fsck reflog for-each-ref rev-list")
_ADDRESS = deferred_pattern(r"(?:https?|ftp|git)://(?!(?:localhost|127\.|0\.0\.0\.0|\[::1\]))[^\s'\"\\)]+")
_LOADS = names("load_dataset( _download(")
_DATA_SET = deferred_pattern(r"\b(?:load_dataset|hf_hub_download|snapshot_download)\(\s*(?:repo_id=)?f?['\"]([^'\"]+)")
_OBJECTS = deferred_pattern(
    r"\.git/objects(?=[\s\S]{0,2000}zlib\.)|(?:rev-list|log|cat-file)['\", ]+--(?:all|batch-all-objects)"
)
"""Code that looks into the object store by itself, or through Git at all of it."""
_DECOMPILERS = names("pycdc decompyle3 uncompyle6 pycdas")
_STREAMS = {
    "unzip": deferred_pattern(r"-[a-z]*[pc]"),
    "bsdtar": deferred_pattern(r"-?\w*O"),
    "tar": deferred_pattern(r"-?\w*O\w*|--to-stdout"),
}
_ARCHIVE = deferred_pattern(r"\.(?:whl|zip|tgz|tar(?:\.\w+)?|gz|crate|jar|gem)$")
_IN_CODE = names("urlopen urlretrieve requests. httpx. aiohttp fetch( axios")
_PACKAGE_WORDS = names(
    "-packages/ node_modules/ pkg/mod/ .cargo/registry/ .m2/repository/ /gems/ GOMODCACHE inspect.getsource"
)
"""Of which each match of the next pattern holds one: a text is looked through for them in a tenth of the time."""
_PACKAGES = deferred_pattern(
    r"(?:site-packages|dist-packages|node_modules|pkg/mod|\.cargo/registry|\.m2/repository|/gems)/[^\s'\"]*"
    r"|GOMODCACHE\)?\}?/[^\s'\"]*|inspect\.getsource\w*"
)
_BASE = deferred_pattern(r"(?:HEAD|@)(?:[~^]\d*)*(?:\.\.\.?(?:HEAD|@)(?:[~^]\d*)*)?$")
_REVISION = deferred_pattern(
    r"[0-9a-f]{7,40}(?:[~^]\d*)*|(?:origin|upstream|remotes|refs|tags)/\S+|FETCH_HEAD|stash@\{\d+\}|v?\d+\.\d[\w.-]*"
    r"|(?:HEAD|@)@\{\d+\}|(?:main|master|develop|dev|trunk|fix\S*)"
)
"""What names a state that need not be the base or before it."""


_SYSTEM = deferred_pattern(r"/(?:usr|etc|proc|sys|dev|bin|opt/conda|opt/miniconda)/")
_ANSWER_WORDS = names(
    "gold solution oracle answer expected reference upstream cache secret hidden grader grading verifier eval judge"
    " attempt previous instance.json .patch .diff"
)
"""As above, in lower case. What was left beside a file has its own words."""
_ANSWER = deferred_pattern(
    r"gold|solution|oracle|answer|expected|reference|upstream|cache|secret|hidden|grader|grading|verifier|\beval\b|judge"
    r"|attempt_?\d|previous|instance\.json|\.(?:patch|diff|orig|rej|bak)$",
    re.IGNORECASE,
)
_ABSOLUTE = deferred_pattern(r"(?<![\w.:/*~-])(?:~|\.\.)?/[\w.@+-]+(?:/[\w.@+-]+)+")
_BESIDE_WORDS = names(".orig .rej .bak")
_BESIDE = deferred_pattern(r"[\w./@+-]*\w\.(?:orig|rej|bak)(?![\w.])")
"""What an editor or a tool left of a file, beside it."""
_LONGEST_COMMAND = 2_000


class Outside(Struct, frozen=True):
    """Where it is from, in the words of `origin`, and which."""

    origin: EditOrigin
    source: str


@lru_cache(maxsize=1024)
def outside(command: str) -> tuple[Outside, ...]:
    """The sources outside of the working tree that a command shows or takes text from."""
    shown: list[Outside] = []
    for words, *_ in simple_commands(command):
        words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
        name = words[0].rpartition("/")[2].lower() if words else ""
        if name == "git":
            shown += _of_git(git_verb(words))
        elif name in _FETCHERS:
            address = next((m[0] for w in words[1:] if (m := _ADDRESS.search(w))), None)
            if address is not None or name in ("gh", "glab"):
                shown.append(Outside("network", address or " ".join(words[:3])))
        elif name in _INSTALLERS and not _GETS.isdisjoint(words[1:3]):
            packages = [w for w in operands(words)[1:] if w not in _GETS and w[:1] not in "./"]
            shown += [Outside("package", " ".join(packages))] if packages else []
        elif name in _DECOMPILERS:
            shown.append(Outside("copied", words[-1]))
        elif name in _STREAMS and any(map(_STREAMS[name].fullmatch, words[1:])):
            shown += [Outside("package", word) for word in words[1:] if _ARCHIVE.search(word)]
    for text in (command, *(heredoc.text for heredoc in split(command).heredocs.values())):
        if _holds(text, _PACKAGE_WORDS) and (named := _PACKAGES.search(text)) is not None:
            shown.append(Outside("package", named[0][:200]))
        shown += of_code(text)
    return tuple(dict.fromkeys(shown))


def named_like_answers(command: str) -> list[str]:
    """The files that a command, or a path, names from the root and whose names are those of answers, and those left
    beside a file: it does not say whether they lie outside of the working tree."""
    begin = command[:_LONGEST_COMMAND]
    lower = begin.lower()
    is_beside = _holds(lower, _BESIDE_WORDS)
    # Without regard to capitals a pattern takes a few signs for letters that are none in lower case either.
    if not is_beside and begin.isascii() and not _holds(lower, _ANSWER_WORDS):
        return []
    paths = [path for path in _ABSOLUTE.findall(begin) if not _SYSTEM.match(path) and _ANSWER.search(path)]
    return list(dict.fromkeys([*paths, *(_BESIDE.findall(begin) if is_beside else ())]))


def _holds(text: str, words: frozenset[str]) -> bool:
    return any(map(text.__contains__, words))


def of_code(text: str) -> list[Outside]:
    """The sources outside that a program gets text from, by the words of its code."""
    sources: list[Outside] = []
    if "://" in text and _holds(text, _IN_CODE) and (address := _ADDRESS.search(text)) is not None:
        sources.append(Outside("network", address[0]))
    if _holds(text, _LOADS) and (data_set := _DATA_SET.search(text)) is not None:
        sources.append(Outside("network", f"data set {data_set[1]}"))
    if "import" in text and (objects := _OBJECTS.search(text)) is not None:
        sources.append(Outside("repository", f"objects of the repository ({objects[0]})"))
    return sources


def _of_git(verb: list[str]) -> list[Outside]:
    if not verb:
        return []
    if verb[0] in ("fetch", "pull", "clone"):
        return [Outside("network", " ".join(verb[:3]))]
    if verb[0] in _OF_ALL or verb[:2] == ["stash", "show"]:
        return [Outside("repository", " ".join(verb[:2]))]
    if verb[0] not in _SHOWS:
        return []
    named = next((w for w in verb[1:] if w in _ALL_REFS), None)
    named_first = [w for w in operands(verb)[:1] if verb[0] in _REVISION_FIRST and not _PATH.search(w[-_LONGEST_PATH:])]
    revisions = [r for w in operands(verb) if (r := future_of(w, w in named_first))]
    return [Outside("repository", named or revisions[0])] if named or revisions else []


def future_of(word: str, is_revision: bool = False) -> str:
    """The revision that a word names, if it need not be the base or one before it; empty where it is none."""
    revision = word.partition(":")[0]
    if not revision or _BASE.match(revision):
        return ""
    parts = [part for part in re.split(r"\.\.\.?", revision) if part and not _BASE.match(part)]
    return revision if (is_revision and parts) or any(map(_REVISION.fullmatch, parts)) else ""
