"""The text that a command prints, or the origin of that text, for the file that its output goes into."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from agentsignals.model import EditOrigin
from agentsignals.model.lazy import deferred_pattern
from agentsignals.shell.arguments import UNRESOLVED, names, operands, program
from agentsignals.shell.kinds import git_verb, leading_words
from agentsignals.shell.tokens import Heredoc, Simple, simple_commands, simples, split

_SHOWS = names("show cat-file diff log archive format-patch blame")
_OBJECTS = names("blob tree commit tag")
_FETCHES = names("curl wget http https xh gh glab iwr irm invoke-webrequest invoke-restmethod")
_PASSES_ON = names(
    "tee cat sed gsed awk head tail grep egrep sort uniq tr cut jq yq base64 gunzip xz tar python python3 node"
)
"""Commands that print their input, or a part of it."""
_EXPANDED = re.compile(r"[$`]").search
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "r": "\r"}
_ESCAPE = re.compile(r"\\([nt\\\"'r])")


class Output(Struct, frozen=True, gc=False):
    """A text (None if unknown) and its origin."""

    text: str | None
    origin: EditOrigin
    source: str | None = None


def printed(words: Sequence[str], name: str, heredoc: Heredoc | None, input_: Output | None) -> Output:
    """Return what a command prints. `input_` is its standard input from a pipe."""
    if heredoc is not None and name in ("cat", "tee"):
        return Output(heredoc.text, "written")
    if name in ("echo", "printf", "write-output"):
        text = _echoed(words) if name != "printf" else _formatted(words)
        return Output(text, "written") if text is not None else Output(None, "program", name)
    if name in _FETCHES:
        return Output(None, "network", next((w for w in words[1:] if "://" in w), name))
    if name == "git":
        verb = git_verb(words)
        if verb[:1] and verb[0] in _SHOWS:
            shown = next((w for w in verb[1:] if w[:1] != "-" and w not in _OBJECTS), verb[0])
            return Output(None, "repository", shown)
    if input_ is not None and (name == "tee" or (name == "cat" and not operands(words))):
        return input_
    if name == "cat" and len(files := operands(words)) == 1 and not UNRESOLVED(files[0]):
        return Output(None, "copied", files[0])
    if input_ is not None and name in _PASSES_ON and input_.origin != "written":
        return Output(None, input_.origin, input_.source)
    return Output(None, "program", name or None)


def _echoed(words: Sequence[str]) -> str | None:
    n, escapes, ends = 1, False, "\n"
    while n < len(words) and re.fullmatch(r"-[neE]+", words[n]):
        ends, escapes = "" if "n" in words[n] else ends, escapes or "e" in words[n]
        n += 1
    text = " ".join(words[n:])
    if _EXPANDED(text):
        return None
    return (_unescaped(text) if escapes else text) + ends


def _formatted(words: Sequence[str]) -> str | None:
    arguments = list(words[2:] if words[1:2] == ["--"] else words[1:])
    if not arguments or any(map(_EXPANDED, arguments)):
        return None
    form, *values = arguments
    if "%" not in form.replace("%%", ""):
        return _unescaped(form).replace("%%", "%")
    rest = _unescaped(form.replace("%s", ""))
    if form.count("%s") == 1 and "%" not in rest and values:
        return "".join(_unescaped(form).replace("%s", value) for value in values)
    return None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text)


# -- searches: does the exit code mean "nothing found" or a failure? ---------------------------------------------------

_SEARCHES = names("rg grep egrep fgrep zgrep ag ack fd fdfind find findstr select-string which whereis locate pgrep")
_SHELLS = names("bash sh zsh dash ksh")
_SHELL_TEXT = names("-c -lc -ic")
_QUIET = names("-q --quiet --silent -s")
_ACTS = names("-exec -execdir -ok -okdir -delete -fprint -fprintf -fls")
_XARGS_SAYS = 123
"""GNU xargs exits so when a command that it ran exited with 1 to 125 (its manual, "Exit status")."""

_GREPS = names("rg grep egrep fgrep zgrep pgrep")
"""By their manuals these fail with another status than 1, which means "nothing found"."""
_COUNTS = re.compile(r"--count(?:-matches)?|-[A-Za-z]*c[A-Za-z]*").fullmatch
_ZERO = re.compile(r"^(?:.*:)?0$", re.MULTILINE)
_STOPS_EARLY = re.compile(r"\bset +-\w*e").search
_PARTS = re.compile(r"[;\n]").finditer
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
    if last is None or last[2] or _STOPS_EARLY(command):
        return False
    if _runs_text(words):
        return len(simples(command)) == 1 and grep_decides_exit(words[-1])
    if program(words[0] if words else "") not in _GREPS:
        return False
    line = command.strip()
    # A `;` in quotes parts nothing: what follows that one is another command, or none.
    return any(simples(line[part.end() :]) == [last] for part in list(_PARTS(line))[-_LOOKED_BACK:])


def without_zero_counts(command: str, text: str) -> str:
    """Return the output without the zero counts of a search."""
    words = _words(_last(command))
    counts = program(words[0] if words else "") in _GREPS and any(map(_COUNTS, words[1:]))
    return _ZERO.sub("", text) if counts else text


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
    if name not in _SEARCHES:
        return None
    options = set(words[1:])
    acts = name in ("find", "fd", "fdfind") and not options.isdisjoint(_ACTS | {"-x", "-X", "--exec"})
    return "quiet" if last[1] or acts or not options.isdisjoint(_QUIET) else "prints"


def _words(last: Simple | None) -> list[str]:
    """Return the program and its arguments, `git grep` as `grep`; nothing for a negated command."""
    words = leading_words(last[0]) if last is not None and last[0][:1] != ["!"] else []
    if words and program(words[0]) == "git":
        verb = git_verb(words)
        return verb if verb[:1] == ["grep"] else []
    return words


def _runs_text(words: list[str]) -> bool:
    """Return whether words are a shell with its line (`bash -lc '…'`)."""
    return len(words) > 2 and words[-2] in _SHELL_TEXT and program(words[0]) in _SHELLS


@lru_cache(maxsize=4096)
def _last(command: str) -> Simple | None:
    """Return the last simple command outside of substitutions."""
    return next((s for s in reversed(simple_commands(command)) if s[0] and not s[3]), None)


# -- polling (design/signals.md#waiting): waiting for something, or looking at its state, is no repetition -------------

_WAITS = names(
    "sleep wait watch inotifywait fswatch wait-for-it wait-for-it.sh wait-on start-sleep ps pgrep pstree jobs top htop"
    " lsof ss netstat fuser pidof journalctl squeue sacct qstat bjobs nvidia-smi ping pg_isready get-process get-job"
    " receive-job wait-job tasklist"
)
"""Programs that wait, or show a state, and change nothing."""
_STATE = re.compile(
    r"""(?:
      gh\ (?:run|pr|workflow)\ (?:view|list|ls|watch|checks|status)
    | gh\ api\ \S*/(?:actions|check-\w+|status)\b\S*
    | glab\ (?:ci|pipeline|mr)\ (?:view|list|ls|status|get|trace)
    | (?:kubectl|oc|k)(?:\ \S+){0,2}?\ (?:get|describe|logs|wait|top|events|rollout\ status)
    | (?:docker|podman|nerdctl|docker-compose)(?:\ \S+){0,2}?\ (?:ps|logs|top|stats|inspect|wait|port|ls)
    | helm(?:\ \S+){0,2}?\ (?:status|list|ls|history)
    | (?:systemctl|supervisorctl|launchctl|minikube|argocd\ app|pm2)(?:\ \S+)?\ (?:status|is-active|is-failed|show|list
        |ls|print|tail|logs|jlist|get|wait)
    | service\ \S+\ status
    | tmux(?:\ \S+)?\ (?:capture-pane|ls|has-session|list-\w+)
    | (?:flyctl|fly|heroku|railway|vercel|netlify|wrangler|render)(?:\ \S+)?\ (?:status|logs?|ps|inspect|tail|ls|list)
    | aws\ \S+\ (?:(?:describe|list|get)-\S+|wait|tail)
    | (?:gcloud|az)(?:\ \S+){1,4}\ (?:describe|list|show|read|tail|wait)
    | redis-cli\ ping | mysqladmin\ (?:ping|status)
    )(?![\w])""",
    re.VERBOSE,
).match
"""For a program with many verbs: verb and object that ask for a state; options removed."""
_ACTIONS = re.compile(
    r"(?<!\Agh) (?:create|delete|remove|rm|merge|close|rerun|cancel|apply|exec|run|scale|edit|patch|restart|start|stop"
    r"|up|down)\b"
).search
_FILTERS = names(
    "head tail grep egrep rg wc sort uniq cut awk sed tr jq yq cat column echo printf date true false : cd test [ [["
    " ]] do done then else fi while until for if break exit export set xargs tee select-string get-date"
)
"""Commands that may accompany a look: they format its output or end the loop."""
_READERS = names("tail head cat less more grep egrep rg wc sed awk jq get-content gc type")
_FOLLOWS = re.compile(r"-\w*[fF]$|--follow|--retry|-Wait$").match
_LOG = re.compile(
    r"\.(?:log|out|err|output|stdout|stderr)(?:\.(?:txt|jsonl?|\d{1,8}))?$"
    r"|(?:^|[/\\_-])(?:logs?|nohup)(?:[/\\_-][^.]*)?(?:\.(?:txt|jsonl?|\d{1,8}))?$",
    re.I,
)
"""A log by its ending; or by its name or folder, if it has no other ending: `lib/log.ts` is code."""
_POLLING_SEARCHES = names("grep egrep rg sed awk jq")
"""Their first argument is a pattern or a script, and no file."""
_POLLING_FETCHES = names("curl wget http https xh iwr irm invoke-webrequest invoke-restmethod")
_HEALTH = re.compile(
    r"localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]"
    r"|[/.](?:health\w*|livez?|liveness|ready|readyz|readiness|status|ping|up|version)(?:[/?#.]|$)",
    re.I,
)
_SENDS = re.compile(r"-[dFTX]|--data|--form|--json|--upload|--request|-Method|-Body|--post|(?i:post|put|patch|delete)$")
_FIELDS = re.compile(r"-[fFX]|--(?:raw-)?field|--method|--input")
"""`gh api` sends something."""
_MANY_VERBS = names(
    "gh glab kubectl oc k docker podman nerdctl docker-compose helm systemctl supervisorctl launchctl minikube argocd"
    " pm2 service tmux flyctl fly heroku railway vercel netlify wrangler render aws gcloud az redis-cli mysqladmin nc"
)
_NAMED = _WAITS | _POLLING_FETCHES | _MANY_VERBS | {"tail", "get-content"}
_WORDS = re.compile(r"[\w.-]+").findall
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
        elif name not in _FILTERS:
            return False
    lowered = command.lower()
    return looks and (not _NAMED.isdisjoint(_WORDS(lowered)) or any(part in lowered for part in _OF_LOGS))


@lru_cache(maxsize=4096)
def is_log(path: str) -> bool:
    """Return whether a path is a log: what a program writes while it runs."""
    return _LOG.search(path[-_PATH_CHARS:]) is not None


def _looks(name: str, arguments: list[str]) -> bool:
    if name in _MANY_VERBS:
        # Such a program must only be asked for a state.
        if name == "nc":
            return any(a[:1] == "-" and "z" in a for a in arguments)
        if arguments[:1] == ["api"] and any(map(_FIELDS.match, arguments)):
            return False
        verbs = [name, *[a for a in arguments if a[:1] != "-"]]
        return _STATE(" ".join(verbs[:7])) is not None and _ACTIONS(" ".join(verbs[:4])) is None
    if name in _POLLING_FETCHES:
        return any(map(_HEALTH.search, arguments)) and not any(map(_SENDS.match, arguments))
    if name in _POLLING_SEARCHES:
        arguments = [a for a in arguments if a[:1] != "-"][1:]
    if name in _READERS:
        return any(map(is_log, arguments)) or (name in ("tail", "get-content") and any(map(_FOLLOWS, arguments)))
    return name in _WAITS


# -- text from outside of the working tree: other revisions, the network, installed packages ---------------------------

_FETCHERS = names("curl wget http https xh aria2c lynx w3m gh glab iwr irm invoke-webrequest invoke-restmethod")
_INSTALLERS = names("pip pip3 uv npm pnpm yarn cargo gem go")
_GETS = names("download install pack view add get")
_SHOWS_OUTSIDE = names(
    "show diff log cat-file checkout restore cherry-pick archive blame grep merge rebase read-tree worktree"
)
_REVISION_FIRST = names("show cherry-pick cat-file archive")
_PATH = deferred_pattern(r"^[^:]*(?:/[^/:]*\.\w+|\.\w{1,4})$|^\d+$|^(?:-p|blob|tree|commit)$")
_LONGEST_PATH = 300
_ALL_REFS = names("--all --branches --remotes --reflog -g --tags")
_OF_ALL = names("fsck reflog for-each-ref rev-list")
_ADDRESS = deferred_pattern(r"(?:https?|ftp|git)://(?!(?:localhost|127\.|0\.0\.0\.0|\[::1\]))[^\s'\"\\)]+")
_LOADS = names("load_dataset( _download(")
_DATA_SET = deferred_pattern(r"\b(?:load_dataset|hf_hub_download|snapshot_download)\(\s*(?:repo_id=)?f?['\"]([^'\"]+)")
_OBJECTS_OUTSIDE = deferred_pattern(
    r"\.git/objects(?=[\s\S]{0,2000}zlib\.)|(?:rev-list|log|cat-file)['\", ]+--(?:all|batch-all-objects)"
)
"""Code that reads the object store directly, or all of it through Git."""
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
"""Each match of `_PACKAGES` contains one of these; searching for them first takes a tenth of the time."""
_PACKAGES = deferred_pattern(
    r"(?:site-packages|dist-packages|node_modules|pkg/mod|\.cargo/registry|\.m2/repository|/gems)/[^\s'\"]*"
    r"|GOMODCACHE\)?\}?/[^\s'\"]*|inspect\.getsource\w*"
)
_BASE = deferred_pattern(r"(?:HEAD|@)(?:[~^]\d*)*(?:\.\.\.?(?:HEAD|@)(?:[~^]\d*)*)?$")
_REVISION = deferred_pattern(
    r"[0-9a-f]{7,40}(?:[~^]\d*)*|(?:origin|upstream|remotes|refs|tags)/\S+|FETCH_HEAD|stash@\{\d+\}|v?\d+\.\d[\w.-]*"
    r"|(?:HEAD|@)@\{\d+\}|(?:main|master|develop|dev|trunk|fix\S*)"
)
"""Revisions that need not be the base or an ancestor of it."""


_SYSTEM = deferred_pattern(r"/(?:usr|etc|proc|sys|dev|bin|opt/conda|opt/miniconda)/")
_ANSWER_WORDS = names(
    "gold solution oracle answer expected reference upstream cache secret hidden grader grading verifier eval judge"
    " attempt previous instance.json .patch .diff"
)
"""Words of `_ANSWER` in lower case. Leftovers of a file have words of their own."""
_ANSWER = deferred_pattern(
    r"gold|solution|oracle|answer|expected|reference|upstream|cache|secret|hidden|grader|grading|verifier|\beval\b|judge"
    r"|attempt_?\d|previous|instance\.json|\.(?:patch|diff|orig|rej|bak)$",
    re.IGNORECASE,
)
_ABSOLUTE = deferred_pattern(r"(?<![\w.:/*~-])(?:~|\.\.)?/[\w.@+-]+(?:/[\w.@+-]+)+")
_BESIDE_WORDS = names(".orig .rej .bak")
_BESIDE = deferred_pattern(r"[\w./@+-]*\w\.(?:orig|rej|bak)(?![\w.])")
"""Files that an editor or a tool leaves next to the original."""
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
        shown += sources_in_code(text)
    return tuple(dict.fromkeys(shown))


def answer_paths(command: str) -> list[str]:
    """Return absolute paths with names like those of answers, and leftovers of a file. They may lie inside the
    working tree."""
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


def sources_in_code(text: str) -> list[Outside]:
    """Return the sources outside of the working tree that code gets text from."""
    sources: list[Outside] = []
    if "://" in text and _holds(text, _IN_CODE) and (address := _ADDRESS.search(text)) is not None:
        sources.append(Outside("network", address[0]))
    if _holds(text, _LOADS) and (data_set := _DATA_SET.search(text)) is not None:
        sources.append(Outside("network", f"data set {data_set[1]}"))
    if "import" in text and (objects := _OBJECTS_OUTSIDE.search(text)) is not None:
        sources.append(Outside("repository", f"objects of the repository ({objects[0]})"))
    return sources


def _of_git(verb: list[str]) -> list[Outside]:
    if verb[:1] and verb[0] in ("fetch", "pull", "clone"):
        return [Outside("network", " ".join(verb[:3]))]
    if verb[:1] and (verb[0] in _OF_ALL or verb[:2] == ["stash", "show"]):
        return [Outside("repository", " ".join(verb[:2]))]
    if not verb or verb[0] not in _SHOWS_OUTSIDE:
        return []
    named = next((w for w in verb[1:] if w in _ALL_REFS), None)
    named_first = [w for w in operands(verb)[:1] if verb[0] in _REVISION_FIRST and not _PATH.search(w[-_LONGEST_PATH:])]
    revisions = [r for w in operands(verb) if (r := later_revision(w, w in named_first))]
    return [Outside("repository", named or revisions[0])] if named or revisions else []


def later_revision(word: str, is_revision: bool = False) -> str:
    """Return the revision that a word names, if it need not be the base or an ancestor; else an empty text."""
    revision = word.partition(":")[0]
    if not revision or _BASE.match(revision):
        return ""
    parts = [part for part in re.split(r"\.\.\.?", revision) if part and not _BASE.match(part)]
    return revision if (is_revision and parts) or any(map(_REVISION.fullmatch, parts)) else ""
