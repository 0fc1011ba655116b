"""Whether a command line waits, or looks how far something is that runs by itself: to look again is no repetition
(design/signals.md#waiting)."""

from __future__ import annotations

import re
from functools import lru_cache

from agentsignals.shell.kinds import leading_words
from agentsignals.shell.programs import program
from agentsignals.shell.tokens import simple_commands
from agentsignals.shell.writing import names

_WAITS = names(
    "sleep wait watch inotifywait fswatch wait-for-it wait-for-it.sh wait-on start-sleep ps pgrep pstree jobs top htop"
    " lsof ss netstat fuser pidof journalctl squeue sacct qstat bjobs nvidia-smi ping pg_isready get-process get-job"
    " receive-job wait-job tasklist"
)
"""Programs that wait, or tell how something stands, and change nothing."""
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
"""Of a program with many verbs, those that ask how something stands; options left out."""
_DEEDS = re.compile(
    r"(?<!\Agh) (?:create|delete|remove|rm|merge|close|rerun|cancel|apply|exec|run|scale|edit|patch|restart|start|stop"
    r"|up|down)\b"
).search
_FILTERS = names(
    "head tail grep egrep rg wc sort uniq cut awk sed tr jq yq cat column echo printf date true false : cd test [ [["
    " ]] do done then else fi while until for if break exit export set xargs tee select-string get-date"
)
"""What may stand beside: it says what to show of a look, or when to end."""
_READERS = names("tail head cat less more grep egrep rg wc sed awk jq get-content gc type")
_FOLLOWS = re.compile(r"-\w*[fF]$|--follow|--retry|-Wait$").match
_LOG = re.compile(
    r"\.(?:log|out|err|output|stdout|stderr)(?:\.(?:txt|jsonl?|\d{1,8}))?$"
    r"|(?:^|[/\\_-])(?:logs?|nohup)(?:[/\\_-][^.]*)?(?:\.(?:txt|jsonl?|\d{1,8}))?$",
    re.I,
)
"""By its ending; else by its name or folder, where it has no other: `lib/log.ts` and `src/log/handler.go` are code."""
_SEARCHES = names("grep egrep rg sed awk jq")
"""Their first argument is a pattern or a script, and no file."""
_FETCHES = names("curl wget http https xh iwr irm invoke-webrequest invoke-restmethod")
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
_NAMED = _WAITS | _FETCHES | _MANY_VERBS | {"tail", "get-content"}
_WORDS = re.compile(r"[\w.-]+").findall
_OF_LOGS = ("log", ".out", ".err", "nohup")
_LONGEST = 4_000
_PATH_CHARS = 300
"""A path's end says what it is of; one of a million characters costs no more."""


@lru_cache(maxsize=4096)
def is_look(command: str) -> bool:
    """Whether a line waits or looks, and does nothing but that and showing what it saw."""
    if len(command) > _LONGEST:
        return False
    looks = False
    for words, targets, _, _ in simple_commands(command):
        words = leading_words(words)  # noqa: PLW2901  (what runs is asked, not what runs it)
        name = program(words[0]).lower() if words else "echo"
        if any(not is_log(target) for target in targets):
            return False
        if _looks(name, words[1:]):
            looks = True
        elif name not in _FILTERS:
            return False
    return looks and _names_one(command)


def _names_one(command: str) -> bool:
    """Whether a line names one of the programs, or a log, as it stands there."""
    lowered = command.lower()
    return not _NAMED.isdisjoint(_WORDS(lowered)) or any(part in lowered for part in _OF_LOGS)


@lru_cache(maxsize=4096)
def is_log(path: str) -> bool:
    """Whether a path is that of what a program writes while it runs."""
    return _LOG.search(path[-_PATH_CHARS:]) is not None


def _looks(name: str, arguments: list[str]) -> bool:
    if name in _MANY_VERBS:
        return _asks(name, arguments)
    if name in _FETCHES:
        return any(map(_HEALTH.search, arguments)) and not any(map(_SENDS.match, arguments))
    if name in _SEARCHES:
        arguments = [a for a in arguments if a[:1] != "-"][1:]
    if name in _READERS:
        return any(map(is_log, arguments)) or (name in ("tail", "get-content") and any(map(_FOLLOWS, arguments)))
    return name in _WAITS


def _asks(name: str, arguments: list[str]) -> bool:
    """Whether a program of many verbs is asked how something stands, and to do nothing about it."""
    if name == "nc":
        return any(a[:1] == "-" and "z" in a for a in arguments)
    if arguments[:1] == ["api"] and any(map(_FIELDS.match, arguments)):
        return False
    verbs = [name, *[a for a in arguments if a[:1] != "-"]]
    return _STATE(" ".join(verbs[:7])) is not None and _DEEDS(" ".join(verbs[:4])) is None
