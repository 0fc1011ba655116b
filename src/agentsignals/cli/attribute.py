"""`attribute`: whose lines the commits of a repository added, and what became of them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.cli.over_repositories import shown, with_engine
from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.repositories.attribute import Attribution
    from agentsignals.repositories.commit_figures import Share


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repositories", metavar="REPO", nargs="+", help="a repository's folder or address")
    parser.add_argument("--afresh", action="store_true", help="also where nothing changed since the last time")
    with_engine(parser)


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import Bar, json_text
    from agentsignals.ingest import collection
    from agentsignals.ingest.collection import attribute_repository

    how = {"afresh": options.afresh, "jobs": options.jobs, "engine": options.engine}
    if len(options.repositories) == 1:
        result = attribute_repository(options.repositories[0], options.store, **how)
        print(json_text(result) if options.json else _text(result))
        return 0
    bar = Bar(options.quiet)
    try:
        _, results = collection.attribute_repositories(options.repositories, options.store, progress=bar, **how)
    finally:
        bar.close()
    return shown(results, _text, as_json=options.json)


def _text(result: Attribution) -> str:
    from agentsignals.cli.output import figure, printable

    record, survived = result.agreement_with_record, result.survival
    missing = f", {result.sessions_missing:,} missing" if result.sessions_missing else ""
    linked = f"{result.checkpoints_linked:,} of {result.checkpoints:,} linked to commits"
    rows = [
        ("repository", printable(result.repo) + (" (unchanged since the last time)" if result.unchanged else "")),
        ("checkpoints", linked + _reasons(result.unlinked)),
        ("commits", f"{result.commits:,} attributed of {result.commits_seen:,}"),
        ("sessions", f"{result.sessions:,}{missing}"),
        ("agent's", _bounds(result.share)),
        ("estimate", _estimate(result)),
        ("lines", ", ".join(f"{n:,} {tag}" for tag, n in sorted(result.lines.items(), key=lambda p: -p[1])) or "none"),
        ("modes", "; ".join(f"{basis}: {_counts(modes)}" for basis, modes in result.modes.items())),
        ("record", f"mean difference {_number(record.mae, ' points')} on {record.n:,} comparable commits,"
                   f" {record.within_interval:,} of them within the replay's bounds"
                   f" ({_number(record.unknown_mae, '')} on {record.unknown_n:,} that have unknown lines)"),
        ("", f"on all {record.all_rows:,} with a record {_number(record.all_mae, ' points')}; by the recorded lines, of"
             f" what was committed, {_number(record.lines_mae, ' points')} on {record.lines_n:,}"),
        *(("" if n else "apart by", f"{count:,} {cause}") for n, (cause, count) in enumerate(record.causes.items())),
        ("written", f"{figure(survived.eventual.produced)} lines, {_share(survived.eventual.efficiency)} reached a"
                    f" commit (Eq 2), {_share(survived.eventual.survival)} of those left standing (Eq 3)"),
        ("alive today", f"{_share(survived.alive_at_head.agent_rate)} of agents' committed lines,"
                        f" {_share(survived.alive_at_head.other_rate)} of others"),
    ]  # fmt: skip
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def _reasons(unlinked: dict[str, int]) -> str:
    return f" ({', '.join(f'{n:,} {reason}' for reason, n in unlinked.items())})" if unlinked else ""


def _counts(modes: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {mode}" for mode, n in modes.items()) or "none"


def _bounds(share: Share) -> str:
    """The agents' share of the lines that somebody wrote, as bounds: never one number that leaves out the unknown."""
    if share.low is None or share.high is None:
        return "no line has an author"
    unknown = f"{100 * share.unknown / share.n:.1f} % unknown"
    return f"{100 * share.low:.1f} to {100 * share.high:.1f} % of {share.n:,} authored lines; {unknown}"


def _estimate(result: Attribution) -> str:
    share, record = result.share, result.agreement_with_record
    if share.likely is None:
        return "none: no line is seen to be an agent's or a person's"
    if not share.unknown:
        return f"{100 * share.likely:.1f} %: no line is unknown"
    error = (
        f"{record.unknown_mae:.1f} points off the record on {record.unknown_n:,} such commits here"
        if record.unknown_mae is not None
        else "no comparable commit here tells how far off it is"
    )
    return f"{100 * share.likely:.1f} % with an unknown line counted for half; {error}"


def _number(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:.1f}{unit}"


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else f"{100 * value:.1f} %"


VERB = Verb(
    "attribute", "whose lines a repository's commits added, and what became of them", "attribute .", arguments, run
)
