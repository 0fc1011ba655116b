"""The scanner that is always there: our own rules, in this process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

from agentsignals.scanning.languages import language_of
from agentsignals.scanning.rules import rules, rules_for
from agentsignals.scanning.rules.python_tree import module_of
from agentsignals.scanning.rules.rule import Rule, Text
from agentsignals.scanning.scanner import ScanFinding, Scanned, SourceFile, marked

_LARGEST_BYTES = 1_000_000
"""Larger files are data, or made by a program."""
_LONGEST_LINE = 5_000
"""A file with a longer line is minified, or data."""
_MOST_OF_A_RULE = 200
"""Findings of one rule in one file; more say nothing more."""


class OwnRules:
    """Our own rules as a scanner."""

    id = "rules"
    at_once = 50

    @cached_property
    def version(self) -> str:
        """Changes with any rule's version."""
        identity = ",".join(f"{rule.id}@{rule.version}" for rule in rules())
        return f"{len(rules())}-{hashlib.blake2b(identity.encode(), digest_size=4).hexdigest()}"

    def takes(self, path: str) -> bool:
        return language_of(path) is not None

    def scan(self, files: Sequence[SourceFile]) -> list[Scanned]:
        return [scan_one(file.path, file.data) for file in files]


def scan_one(path: str, data: bytes) -> Scanned:
    """What our rules find in a file."""
    language = language_of(path)
    if language is None:
        return Scanned([])
    if len(data) > _LARGEST_BYTES:
        return Scanned([], "too_large")
    if b"\0" in data[:8000]:
        return Scanned([], "not_text")
    plain = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = plain.split("\n")
    if max(map(len, lines)) > _LONGEST_LINE:
        return Scanned([], "minified")
    text = Text(path, language, plain)
    findings = [finding for rule in rules_for(language) for finding in _of_rule(rule, text, lines)]
    findings.sort(key=lambda finding: (finding.line, finding.rule))
    return Scanned(findings, "unparsed" if language == "python" and module_of(plain) is None else None)


def _of_rule(rule: Rule, text: Text, lines: list[str]) -> list[ScanFinding]:
    findings: list[ScanFinding] = []
    seen: set[int] = set()
    for begin, end in rule.find(text):
        line = text.line_at(begin)
        if line in seen:  # one finding a rule and line, or a long line would weigh more than its neighbours
            continue
        seen.add(line)
        last = text.line_at(max(end - 1, begin))
        finding = ScanFinding(
            rule=rule.id,
            line=line,
            end_line=last,
            message=rule.message,
            cwe=rule.cwe,
            severity=rule.severity,
            confidence=rule.confidence,
        )
        findings.append(marked(finding, lines, text.text[begin:end]))
        if len(findings) >= _MOST_OF_A_RULE:
            break
    return findings
