"""`replicate`: published claims against computed values."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.experiments.claims import Plain, Value
    from agentsignals.experiments.replication import Verdict
    from agentsignals.store import Store

_LONGEST_NOTE = 240


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claims", metavar="CLAIMS", help="sentiment, swe-chat, emotion-lab, or a YAML file of claims")
    parser.add_argument(
        "--data", metavar="DIR", help="the data the claims are about (default: the store, where the claims say how)"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 also when a claim is untestable")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.experiments.replication import replicate

    verdicts = replicate(options.claims, options.data, _store(options))
    print(json_text(verdicts) if options.json else _text(verdicts))
    news = [v.claim for v in verdicts if v.status == "fail" and not v.prior_result]
    if news:
        more = f" and {len(news) - 5} more" if len(news) > 5 else ""
        print(f"agentsignals: {len(news)} CLAIMS FAILED: {', '.join(news[:5])}{more}", file=sys.stderr)
    statuses = {v.status for v in verdicts}
    if statuses <= {"untestable"}:
        print("agentsignals: not one claim could be tested", file=sys.stderr)
        return 1
    return 1 if "fail" in statuses or (options.strict and "untestable" in statuses) else 0


def _store(options: argparse.Namespace) -> Store | None:
    """The store that is named; with none named, the usual one if there is one and the claims have no data of theirs."""
    from agentsignals.errors import StoreError
    from agentsignals.store import Store

    if options.store:
        return Store(options.store)
    try:
        return Store()
    except StoreError:
        return None


def _text(verdicts: list[Verdict]) -> str:
    from agentsignals.cli.output import table

    rows = [
        (
            v.status.upper() if v.status == "fail" else v.status,
            v.claim,
            _value_text(v.expected),
            _value_text(v.computed),
            v.n,
        )
        for v in verdicts
    ]
    lines = [table(("status", "claim", "expected", "computed", "n"), rows, 80), *_reasons(verdicts)]
    counted = {status: sum(v.status == status for v in verdicts) for status in ("pass", "fail", "untestable")}
    expected_failures = sum(v.status == "fail" and bool(v.prior_result) for v in verdicts)
    lines += [
        "",
        f"{counted['pass']} pass, {counted['fail']} fail ({expected_failures} of them known not to reproduce),"
        f" {counted['untestable']} untestable",
    ]
    return "\n".join(lines)


def _reasons(verdicts: list[Verdict]) -> list[str]:
    """Why claims failed, one by one; why others are untestable, one line a reason."""
    from agentsignals.cli.output import printable

    lines = [f"{v.claim}: {v.note}" for v in verdicts if v.status == "fail"]
    without: dict[str, list[str]] = {}
    for v in verdicts:
        if v.status == "untestable":
            without.setdefault(v.why, []).append(v.claim)
    for why, claims in without.items():
        lines.append(f"{claims[0]}{f' and {len(claims) - 1} more' if len(claims) > 1 else ''}: {why}")
    return ["", *(_short(printable(line)) for line in lines)] if lines else []


def _value_text(value: Value | None) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_figure(number)}" for name, number in value.items())
    return "" if value is None else _figure(value)


def _figure(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 1] + "…"


VERB = Verb(
    "replicate", "published claims against computed values", "replicate sentiment --data dataset", arguments, run
)
