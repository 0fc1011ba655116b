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
    users = [found[1].partition(":")[0] for found in _USER.finditer(text.code, start)]
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
        for found in _STRANGERS.finditer(text.code, run.start(2), stop):
            if not _SAFE.search(found[0]):
                yield found.span()


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
        "docker-no-user",
        ("CWE-250",),
        "low",
        "medium",
        "What runs in the container runs as root.",
        ("dockerfile",),
        _no_user,
    ),
    Rule(
        "docker-secret-in-image",
        ("CWE-798",),
        "high",
        "medium",
        "Whoever has the image has the secret.",
        ("dockerfile",),
        matching(
            r"^[ \t]{0,20}(?:ENV|ARG)[ \t]{1,10}\w{0,40}(?:PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_?TOKEN"
            r"|PRIVATE_KEY)\w{0,20}"
            r"(?:=|[ \t]{1,10}+)(?![\"']?(?:\$|[\"']?\s|changeme|placeholder|dummy|build))[\"']?[^\s\"'$]{4,200}",
            flags=8,
        ),
    ),
    Rule(
        "workflow-run-interpolation",
        ("CWE-78",),
        "high",
        "high",
        "A stranger's text becomes part of a script: pass it through env.",
        ("yaml",),
        _interpolated,
    ),
    Rule(
        "workflow-target-checkout",
        ("CWE-829",),
        "high",
        "medium",
        "A stranger's code is checked out where secrets are.",
        ("yaml",),
        matching(
            r"\bref:[ \t]{0,10}[\"']?\$\{\{\s{0,10}github\.(?:event\.pull_request\.head\.(?:sha|ref)|head_ref)",
            needs=("pull_request_target",),
            path=_WORKFLOW,
        ),
    ),
    Rule(
        "container-privileged",
        ("CWE-250",),
        "high",
        "high",
        "The container is given the whole machine.",
        ("yaml",),
        matching(
            r"^[ \t]{1,80}privileged:[ \t]{1,10}true\b|^[ \t]{1,80}-[ \t]{1,10}[\"']?/var/run/docker\.sock:", flags=8
        ),
    ),
    Rule(
        "tf-open-to-all",
        ("CWE-284",),
        "medium",
        "low",
        "The whole Internet may come in.",
        ("terraform",),
        matching(
            r"\bingress\s{0,4}\{[^}]{0,400}cidr_blocks\s{0,4}=\s{0,4}\[[^\]]{0,100}\"0\.0\.0\.0/0\"|\bacl\s{0,4}=\s{0,4}\"public-read"
            r"(?:-write)?\""
        ),
    ),
)
