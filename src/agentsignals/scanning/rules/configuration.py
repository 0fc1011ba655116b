"""Containers, workflows and infrastructure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.scanning.rules.rule import Rule, Span, Text, matching

_WORKFLOW = r"(?:^|/)\.github/(?:workflows|actions)/"
_CHOSEN = (
    r"github\.(?:event\.(?:issue|pull_request|comment|review|review_comment|discussion|head_commit|commits|pages"
    r"|workflow_run|inputs)\b[\w.*\[\]-]{0,80}|head_ref)"
)
"""What a stranger can choose in a workflow's context: titles, texts, branch names (GitHub's guide to hardening)."""
_HARMLESS = (
    r"\.(?:number|id|sha|merged|draft|html_url|node_id|created_at|state|additions|merge_commit_sha)\s{0,4}(?:\}\}|\|)"
)
_RUN = re.compile(r"^([ \t]{0,80})(?:-[ \t]{1,10})?run:[ \t]{0,10}([^\n]*)$", re.MULTILINE)
_STRANGERS = re.compile(r"\$\{\{[^}\n]{0,120}" + _CHOSEN + r"[^}\n]{0,120}\}\}")
_SAFE = re.compile(_HARMLESS)
_FROM = re.compile(r"^[ \t]{0,20}FROM[ \t]{1,10}(?:--platform=\S{1,80}[ \t]{1,10})?(\S{1,200})[^\n]*$", re.I | re.M)
_USER = re.compile(r"^[ \t]{0,20}USER[ \t]{1,10}(\S{1,80})", re.I | re.M)
_RUNS = re.compile(r"^[ \t]{0,20}(?:CMD|ENTRYPOINT)\b", re.I | re.M)


def _no_user(text: Text) -> Iterator[Span]:
    """In the last stage of a build, which is what runs: no user, or root, when a program is named."""
    stages = list(_FROM.finditer(text.code))
    if not stages or re.search(r"nonroot|distroless|rootless|unprivileged", stages[-1][0]):
        return
    start = stages[-1].start()
    users = [match[1].partition(":")[0] for match in _USER.finditer(text.code, start)]
    runs = _RUNS.search(text.code, start)
    if runs is not None and (not users or users[-1] in ("root", "0")):
        yield runs.start(), text.code.find("\n", runs.end()) % (len(text.code) + 1)


def _interpolated(text: Text) -> Iterator[Span]:
    """`${{ … }}` of what strangers choose in a `run:` block: it is pasted into the script before the shell reads it."""
    if not re.search(_WORKFLOW, text.path):
        return
    for run in _RUN.finditer(text.code):
        stop = run.end()
        if run[2].strip()[:1] in ("|", ">", ""):
            stop = _end_of_block(text.code, run.end(), len(run[1]))
        for match in _STRANGERS.finditer(text.code, run.start(2), stop):
            if not _SAFE.search(match[0]):
                yield match.span()


def _end_of_block(code: str, at: int, indent: int) -> int:
    while at < len(code):
        end = code.find("\n", at + 1)
        end = end if end >= 0 else len(code)
        line = code[at + 1 : end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return at
        at = end
    return at


RULES = (
    Rule(
        id="docker-no-user",
        cwe=("CWE-250",),
        severity="low",
        confidence="medium",
        message="What runs in the container runs as root.",
        languages=("dockerfile",),
        find=_no_user,
    ),
    Rule(
        id="docker-secret-in-image",
        cwe=("CWE-798",),
        severity="high",
        confidence="medium",
        message="Whoever has the image has the secret.",
        languages=("dockerfile",),
        find=matching(
            r"^[ \t]{0,20}(?:ENV|ARG)[ \t]{1,10}\w{0,40}(?:PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_?TOKEN"
            r"|PRIVATE_KEY)\w{0,20}"
            r"(?:=|[ \t]{1,10}+)(?![\"']?(?:\$|[\"']?\s|changeme|placeholder|dummy|build))[\"']?[^\s\"'$]{4,200}",
            flags=8,
        ),
    ),
    Rule(
        id="workflow-run-interpolation",
        cwe=("CWE-78",),
        severity="high",
        confidence="high",
        message="A stranger's text becomes part of a script: pass it through env.",
        languages=("yaml",),
        find=_interpolated,
    ),
    Rule(
        id="workflow-target-checkout",
        cwe=("CWE-829",),
        severity="high",
        confidence="medium",
        message="A stranger's code is checked out where secrets are.",
        languages=("yaml",),
        find=matching(
            r"\bref:[ \t]{0,10}[\"']?\$\{\{\s{0,10}github\.(?:event\.pull_request\.head\.(?:sha|ref)|head_ref)",
            needs=("pull_request_target",),
            path=_WORKFLOW,
        ),
    ),
    Rule(
        id="container-privileged",
        cwe=("CWE-250",),
        severity="high",
        confidence="high",
        message="The container is given the whole machine.",
        languages=("yaml",),
        find=matching(
            r"^[ \t]{1,80}privileged:[ \t]{1,10}true\b|^[ \t]{1,80}-[ \t]{1,10}[\"']?/var/run/docker\.sock:", flags=8
        ),
    ),
    Rule(
        id="tf-open-to-all",
        cwe=("CWE-284",),
        severity="medium",
        confidence="low",
        message="The whole Internet may come in.",
        languages=("terraform",),
        find=matching(
            r"\bingress\s{0,4}\{[^}]{0,400}cidr_blocks\s{0,4}=\s{0,4}\[[^\]]{0,100}\"0\.0\.0\.0/0\"|\bacl\s{0,4}=\s{0,4}\"public-read"
            r"(?:-write)?\""
        ),
    ),
)
