"""The page of the watch: `docs/upstream.md`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchmarks.upstream.compare import Report

_HEAD = """\
# What the newest agents write

Made by `make watch-upstream` on {date}. The newest version of each agent is installed from its registry and runs
headless against a scripted model on this machine: it reads a file, runs a command that fails, writes a file and
answers; most go on with a second prompt in a second process. Its files are compared with what our readers make of them.

A field is *read* if the session changes when the field is left out or altered, here or in a sample of `tests/formats`.
It is *tested* if a sample has it. It is *known, not read* if a sample or the list of fields has it and nothing changes
with it. It is *new* if neither has it.

## Sums

What the model sent, and what the reader found. `–` marks a figure that the files do not state.

"""
_SUMS = ("prompts", "calls", "failed calls", "input tokens", "cached tokens", "output tokens")


def written(reports: list[Report], date: str) -> str:
    """Return the page of these reports."""
    ran = [report for report in reports if not report.problem]
    lines = ["| agent | version | " + " | ".join(_SUMS) + " |", "| --- | --- |" + " --: |" * len(_SUMS)]
    lines += [f"| {r.agent} | {r.version} | " + " | ".join(_sum(r, name) for name in _SUMS) + " |" for r in ran]
    lines += ["", "## Records", ""]
    columns = (
        "records",
        "skipped",
        "read and tested",
        "read, no sample",
        "known, not read",
        "new fields",
        "new types",
        "new values",
    )
    lines += ["| agent | " + " | ".join(columns) + " |", "| --- |" + " --: |" * len(columns)]
    for r in ran:
        found = (r.untested, r.not_read, r.new_fields, r.new_types, r.new_values)
        numbers = (r.records, sum(r.skipped.values()), r.read, *map(len, found))
        lines.append(f"| {r.agent} | " + " | ".join(map(str, numbers)) + " |")
    lines += ["", "## Agents that cannot be run", "", "| agent | package | reason |", "| --- | --- | --- |"]
    lines += [f"| {r.agent} | {r.package} | {r.problem} |" for r in reports if r.problem]
    lines += ["", "## Fields", ""]
    for r in ran:
        kinds = {
            "New record types": r.new_types, "New fields": fields(r.new_fields), "New values": r.new_values,
            "Read, in no sample": fields(r.untested), "Known, not read": fields(r.not_read),
            "Columns of the database that are not asked for": r.columns, "Wrong sums": r.wrong,
            "Files that no format reads": r.unread_files,
        }  # fmt: skip
        lines += [f"### {r.agent} {r.version}", ""]
        lines += [f"* {what}: {', '.join(f'`{name}`' for name in names)}" for what, names in kinds.items() if names]
        lines += [] if any(kinds.values()) else ["Every field is read and tested."]
        lines.append("")
    return _HEAD.format(date=date) + "\n".join(lines)


def _sum(report: Report, name: str) -> str:
    found = report.found.get(name)
    if found is None:
        return "–"
    return (
        f"{found:,}"
        if not any(w.startswith(f"{name}:") for w in report.wrong)
        else f"**{found:,}** of {report.sent[name]:,}"
    )


def fields(places: Iterable[str]) -> list[str]:
    """Return the names of fields once each, whatever the types of their records."""
    return sorted({re.sub(r"\[[^\]]*\]", "[]", place.partition(": ")[2]) for place in places})
