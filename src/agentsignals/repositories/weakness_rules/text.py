"""Rules over a file's text: the patterns of `patterns.toml`, and three places that take more than a pattern."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from agentsignals.repositories.weakness_rules.rule import Span, Text, matching, piles_up, rule

_LITERAL = re.compile(r"(?<=[=(,:\[!&|?{};\n])\s{0,8}/((?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,200}\]|[^/\\\n\[*]){1}"
                      r"(?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,200}\]|[^/\\\n\[]){0,400})/[dgimsuvy]{0,8}(?!["
                      r"\w/])")  # fmt: skip
_MADE = re.compile(r"\bRegExp\(\s{0,20}(?:\"((?:\\.|[^\"\\\n]){1,400})\"|'((?:\\.|[^'\\\n]){1,400})')")


def _slow_pattern(text: Text) -> Iterator[Span]:
    for match in _LITERAL.finditer(text.code):
        if piles_up(match[1]):
            yield match.span(1)
    for match in _MADE.finditer(text.code):
        if piles_up((match[1] or match[2]).replace("\\\\", "\\")):
            yield match.span()


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


_CHOSEN = (
    r"github\.(?:event\.(?:issue|pull_request|comment|review|review_comment|discussion|head_commit|commits|pages"
    r"|workflow_run|inputs)\b[\w.*\[\]-]{0,80}|head_ref)"
)
"""Parts of a workflow's context that a stranger can choose: titles, texts, branch names (GitHub's guide to
hardening)."""
_STRANGERS = re.compile(r"\$\{\{[^}\n]{0,120}" + _CHOSEN + r"[^}\n]{0,120}\}\}")
_HARMLESS = re.compile(
    r"\.(?:number|id|sha|merged|draft|html_url|node_id|created_at|state|additions|merge_commit_sha)\s{0,4}(?:\}\}|\|)"
)
_RUN = re.compile(r"^([ \t]{0,80})(?:-[ \t]{1,10})?run:[ \t]{0,10}([^\n]*)$", re.MULTILINE)


def _interpolated(text: Text) -> Iterator[Span]:
    """`${{ … }}` of what strangers choose in a `run:` block: it is pasted into the script before the shell reads it."""
    code = text.code
    if not re.search(_PARTS["github_files"], text.path):
        return
    for run in _RUN.finditer(code):
        stop = run.end()
        if run[2].strip()[:1] in ("|", ">", ""):  # a block: until a line that is indented no deeper
            while stop < len(code):
                end = code.find("\n", stop + 1)
                end = end if end >= 0 else len(code)
                line = code[stop + 1 : end]
                if line.strip() and len(line) - len(line.lstrip()) <= len(run[1]):
                    break
                stop = end
        for match in _STRANGERS.finditer(code, run.start(2), stop):
            if not _HARMLESS.search(match[0]):
                yield match.span()


_DECLARED = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))
_PARTS = {name: part.replace("\n", "") for name, part in _DECLARED.pop("parts").items()}
_FUNCTIONS: dict[str, Callable[[Text], Iterator[Span]]] = {
    "slow_pattern": _slow_pattern, "no_user": _no_user, "interpolated": _interpolated,
}  # fmt: skip


def _pattern(row: dict[str, str], key: str) -> str | None:
    text = row.get(key)
    return text and re.sub(r"\{\{(\w+)\}\}", lambda m: _PARTS[m[1]], text.replace("\n", ""))


RULES = tuple(
    rule(
        rule_id,
        row["rating"],
        row["message"],
        tuple(row["languages"].split()),
        _FUNCTIONS[row["find"]]
        if "find" in row
        else matching(
            _pattern(row, "pattern") or "",
            needs=tuple(row.get("needs", ())),
            unless=_pattern(row, "unless"),
            path=_pattern(row, "path"),
            in_comments=row.get("in_comments", False),
        ),
    )
    for rule_id, row in _DECLARED.items()
)
