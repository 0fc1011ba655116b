"""The page that shows how each tool answers, from the answers kept in `results/`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from conformance import suite

MARKS = {"right": "✓", "wrong": "✗", "unread": "∅", "untold": "–"}


def results() -> list[dict[str, Any]]:
    """The kept answers of each tool, ours first."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(suite.RESULTS.glob("*.json"))]
    return sorted(found, key=lambda result: (result["tool"] != "agentsignals", result["tool"]))


def page() -> str:
    cases, tools = list(suite.cases()), results()
    verdicts = {
        (result["tool"], case.name): suite.verdict(case, result["answers"].get(case.name))
        for result in tools
        for case in cases
    }
    agents = list(dict.fromkeys(case.agent for case in cases))
    lines = [
        "<!-- made by `python -m docs.generate`; do not edit -->",
        "",
        "# Conformance",
        "",
        f"[The suite](../conformance/README.md) has {len(cases)} small made-up logs of {len(agents)} agents, with the"
        " right answers and where each situation was reported. Anybody may run it on any tool. Each tool read the same"
        " homes. Its answers are kept in `conformance/results`.",
        "",
        "✓ right in all that the tool reports; ✗ something is wrong; ∅ the tool found nothing, often because it doesn't"
        " read this agent; – the tool reports none of what is asked. A cost is compared with list prices of November"
        " 2026. A tool that shows 0 for something unknown is wrong.",
        "",
        "| tool | version | asked on | right | wrong | found nothing | doesn't report |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for result in tools:
        counted = Counter(verdicts[result["tool"], case.name] for case in cases)
        cells = [result["tool"], result["version"], result["date"], *(str(counted[verdict]) for verdict in MARKS)]
        lines.append(f"| {' | '.join(cells)} |")
    names = [result["tool"] for result in tools]
    lines += ["", "## By agent", "", "Right of the cases in which the tool reports something asked.", ""]
    lines += [f"| agent | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    for agent in agents:
        own = [case.name for case in cases if case.agent == agent]
        told = [[verdicts[name, case] for case in own if verdicts[name, case] != "untold"] for name in names]
        shares = [f"{verdict.count('right')} of {len(verdict)}" if verdict else "–" for verdict in told]
        lines.append(f"| {agent} | {' | '.join(shares)} |")
    lines += ["", "## By case", "", f"| case | situation | reported in | {' | '.join(names)} |"]
    lines += [f"| --- | --- | --- |{' :-: |' * len(names)}"]
    for case in cases:
        where = ", ".join(_link(source) for source in case.source)
        marks = " | ".join(MARKS[verdicts[name, case.name]] for name in names)
        lines.append(f"| {case.name} | {case.situation.replace('|', chr(92) + '|')} | {where} | {marks} |")
    return "\n".join(lines) + "\n"


def _link(source: str) -> str:
    """A link with a short name; `own` as it is."""
    parts = source.removeprefix("https://github.com/").split("/")
    if source == "own" or not source.startswith("https://github.com/") or len(parts) != 4:
        return source if source == "own" else f"[{source.split('/')[2]}]({source})"
    return f"[{parts[1]}#{parts[3]}]({source})"
