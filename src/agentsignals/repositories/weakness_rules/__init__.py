"""Our own rules: `rules.toml` declares them, written from CWE descriptions and the documentation of the functions they
name. Most are patterns over a file's text; some need a function, and those for Python look at its parsed module."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from agentsignals.repositories.weakness_rules import python

Level = Literal["low", "medium", "high"]
Span = tuple[int, int]

_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_SLASHES = re.compile(
    rf"{_STRING}|`(?:\\.|[^`\\])*(?:`|\Z)|(?P<comment>(?<![:\\])//[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL
)
_HASH = re.compile(rf"{_STRING}|(?P<comment>(?:(?<=\s)|^)#(?!\{{)[^\n]*)", re.MULTILINE | re.DOTALL)
_COMMENTS = {
    **dict.fromkeys(("javascript", "go", "java", "csharp", "c", "rust"), _SLASHES),
    **dict.fromkeys(("shell", "yaml", "ruby", "terraform", "dockerfile", "python"), _HASH),
    "php": re.compile(
        rf"{_STRING}|(?P<comment>(?<![:\\])//[^\n]*|/\*.*?(?:\*/|\Z)|(?:(?<=\s)|^)#(?!\[)[^\n]*)", re.M | re.S
    ),
    "html": re.compile(r"(?P<comment><!--.*?(?:-->|\Z))", re.DOTALL),
}
"""Strings and comments by language. An open comment ends with the file."""
_SHOWN = re.compile(r"[^\n]")
_NEAR = 400
"""Characters of a line before and after a match in which something may speak against it."""


class Text:
    """A file's text; `code` is the same with each character of a comment a space, so that no rule takes an explanation
    for code."""

    def __init__(self, path: str, language: str, text: str) -> None:
        self.path, self.language, self.text = path, language, text
        comments = _COMMENTS.get(language)
        self.code = text if comments is None else comments.sub(
            lambda match: _SHOWN.sub(" ", match[0]) if match.lastgroup else match[0], text
        )  # fmt: skip
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def whole_lines(self, first: int, last: int) -> Span:
        """The characters from one line to another, both included."""
        begin, end = (self._starts[min(line, len(self._starts)) - 1] for line in (first, last))
        stop = self.text.find("\n", end)
        return begin, stop if stop >= 0 else len(self.text)


class Rule(Struct, frozen=True, kw_only=True):
    """A weakness to look for. `find` gives the places; a change of it raises `version`."""

    id: str
    cwe: tuple[str, ...]
    severity: Level
    confidence: Level
    message: str
    languages: tuple[str, ...]
    find: Callable[[Text], Iterator[Span]]
    version: int = 1


def _matching(row: dict[str, Any]) -> Callable[[Text], Iterator[Span]]:
    """The places that a rule's pattern matches."""
    wanted, against, files = (
        re.compile(re.sub(r"\{\{(\w+)\}\}", lambda m: _PARTS[m[1]], row[key].replace("\n", ""))) if key in row else None
        for key in ("pattern", "unless", "path")
    )
    needs, in_comments = row.get("needs", ()), row.get("in_comments", False)

    def find(text: Text) -> Iterator[Span]:
        where = text.text if in_comments else text.code
        if (files and not files.search(text.path)) or (needs and not any(word in where for word in needs)):
            return
        for match in wanted.finditer(where) if wanted else ():
            if against is not None:
                begin = max(where.rfind("\n", 0, match.start()) + 1, match.start() - _NEAR)
                end = where.find("\n", match.end(), match.end() + _NEAR)
                if against.search(where, begin, end if end >= 0 else match.end() + _NEAR):
                    continue
            yield match.span()

    return find


def _in_module(look: python.Look) -> Callable[[Text], Iterator[Span]]:
    def find(text: Text) -> Iterator[Span]:
        module = python.module_of(text.text)
        for node in look(module) if module is not None else ():
            line = getattr(node, "lineno", 1)
            yield text.whole_lines(line, getattr(node, "end_lineno", None) or line)

    return find


_LITERAL = re.compile(r"(?<=[=(,:\[!&|?{};\n])\s{0,8}/((?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,200}\]|[^/\\\n\[*]){1}"
                      r"(?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,200}\]|[^/\\\n\[]){0,400})/[dgimsuvy]{0,8}(?!["
                      r"\w/])")  # fmt: skip
_MADE = re.compile(r"\bRegExp\(\s{0,20}(?:\"((?:\\.|[^\"\\\n]){1,400})\"|'((?:\\.|[^'\\\n]){1,400})')")


def slow_pattern(text: Text) -> Iterator[Span]:
    """Regular expressions of JavaScript that some texts keep busy for ever."""
    for match in _LITERAL.finditer(text.code):
        if python.piles_up(match[1]):
            yield match.span(1)
    for match in _MADE.finditer(text.code):
        if python.piles_up((match[1] or match[2]).replace("\\\\", "\\")):
            yield match.span()


_FROM = re.compile(r"^[ \t]{0,20}FROM[ \t]{1,10}(?:--platform=\S{1,80}[ \t]{1,10})?(\S{1,200})[^\n]*$", re.I | re.M)
_USER = re.compile(r"^[ \t]{0,20}USER[ \t]{1,10}(\S{1,80})", re.I | re.M)
_RUNS = re.compile(r"^[ \t]{0,20}(?:CMD|ENTRYPOINT)\b", re.I | re.M)


def no_user(text: Text) -> Iterator[Span]:
    """In the last stage of a build, which is what runs: no user, or root, when a program is named."""
    stages = list(_FROM.finditer(text.code))
    if not stages or re.search(r"nonroot|distroless|rootless|unprivileged", stages[-1][0]):
        return
    start = stages[-1].start()
    users = [match[1].partition(":")[0] for match in _USER.finditer(text.code, start)]
    runs = _RUNS.search(text.code, start)
    if runs is not None and (not users or users[-1] in ("root", "0")):
        yield runs.start(), text.code.find("\n", runs.end()) % (len(text.code) + 1)


_UNTRUSTED = re.compile(
    r"\$\{\{[^}\n]{0,120}github\.(?:event\.(?:issue|pull_request|comment|review|review_comment|discussion|head_commit"
    r"|commits|pages|workflow_run|inputs)\b[\w.*\[\]-]{0,80}|head_ref)[^}\n]{0,120}\}\}"
)
"""Parts of a workflow's context that an attacker can choose: titles, texts, branch names (GitHub's guide to
hardening)."""
_HARMLESS = re.compile(
    r"\.(?:number|id|sha|merged|draft|html_url|node_id|created_at|state|additions|merge_commit_sha)\s{0,4}(?:\}\}|\|)"
)
_RUN = re.compile(r"^([ \t]{0,80})(?:-[ \t]{1,10})?run:[ \t]{0,10}([^\n]*)$", re.MULTILINE)


def script_injection(text: Text) -> Iterator[Span]:
    """Find untrusted `${{ … }}` expressions in `run:` blocks of GitHub workflows (script injection)."""
    code = text.code
    for run in _RUN.finditer(code) if re.search(_PARTS["github_files"], text.path) else ():
        stop = run.end()
        if run[2].strip()[:1] in ("|", ">", ""):  # a block: until a line that is indented no deeper
            while stop < len(code):
                end = code.find("\n", stop + 1)
                end = end if end >= 0 else len(code)
                line = code[stop + 1 : end]
                if line.strip() and len(line) - len(line.lstrip()) <= len(run[1]):
                    break
                stop = end
        for match in _UNTRUSTED.finditer(code, run.start(2), stop):
            if not _HARMLESS.search(match[0]):
                yield match.span()


_DECLARED = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
_PARTS = {name: part.replace("\n", "") for name, part in _DECLARED.pop("parts").items()}
_FUNCTIONS = {function.__name__: function for function in (slow_pattern, no_user, script_injection)}


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of `rules.toml`."""
    declared = []
    for rule_id, row in _DECLARED.items():
        *cwe, severity, confidence = row["rating"].split()
        if row["languages"] == "python":
            find = _in_module(python.look_of(row))
        else:
            find = _FUNCTIONS[row["find"]] if "find" in row else _matching(row)
        declared.append(
            Rule(
                id=rule_id, cwe=tuple(cwe), severity=severity, confidence=confidence, message=row["message"],
                languages=tuple(row["languages"].split()), find=find, version=row.get("version", 1),
            )
        )  # fmt: skip
    return tuple(declared)


@cache
def rules_for(language: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules() if language in rule.languages or "any" in rule.languages)
