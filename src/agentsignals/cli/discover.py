"""`discover`: where traces could be read from, before anything of them is fetched.

`hub`: data sets on the Hugging Face Hub. `repos`: repositories with checkpoints, among those that are named.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.sources.hub import DataSet


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="PLACE", choices=("hub", "repos"), help="where to look: hub, repos")
    parser.add_argument(
        "names",
        metavar="REPO",
        nargs="*",
        help="repos: folders or addresses, OWNER/NAME, a folder of clones, a list, a saved search result",
    )
    parser.add_argument("--search", metavar="TEXT", help="words in the name")
    parser.add_argument("--owner", metavar="NAME", help="of this person or organisation only")
    parser.add_argument("--license", metavar="ID", help="only with this licence; `none` for those that state none")
    parser.add_argument(
        "--harness", metavar="NAME", help="only of this agent, as tags and file names tell (codex, pi …)"
    )
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help="that has this tag, too")
    parser.add_argument("--untagged", action="store_true", help="also data sets without the tag format:agent-traces")
    parser.add_argument(
        "--distinct", action="store_true", help="leave out data sets that hold the files of another one"
    )
    parser.add_argument("--exclude", metavar="FILE", help="list of data sets to leave out")
    parser.add_argument("--limit", type=int, metavar="N", help="the N most downloaded")


def run(options: argparse.Namespace) -> int:
    from agentsignals import sources as exclusions
    from agentsignals.cli.output import json_text, printable, table
    from agentsignals.errors import UsageError
    from agentsignals.sources import hub as hub_datasets
    from agentsignals.sources import hub as hub_sets

    if options.place == "repos":
        return _repositories(options)
    if options.names:
        raise UsageError("Only repositories are looked for by name.", "Search the Hub with --search or --owner.")
    if options.limit is not None and options.limit < 0:
        raise UsageError(f"--limit {options.limit} came; it counts data sets.", "Give 0 or more.")
    if options.untagged and not (options.search or options.owner or options.tag):
        raise UsageError("--untagged alone would list the whole Hub.", "Add --search, --owner or --tag.")
    left_out = exclusions.read_exclusions(options.exclude) if options.exclude else frozenset()
    tags = [*([] if options.untagged else [hub_datasets.TRACES]), *options.tag]
    listed = hub_sets.with_agents_and_duplicates(hub_datasets.search_datasets(tags, options.search, options.owner))
    wanted = [d for d in listed if _is_wanted(d, options)]
    kept = [d for d in wanted if d.name not in left_out][: options.limit]
    if not options.quiet and len(wanted) > len(kept) and left_out:
        print(f"discover: {sum(d.name in left_out for d in wanted):,} left out by {options.exclude}", file=sys.stderr)
    if options.json:
        print(json_text(kept))
        return 0
    rows = [
        (
            d.name,
            hub_sets.count_traces(d),
            d.bytes,
            d.licence or "none stated",
            ", ".join(d.harnesses),
            d.downloads,
            _remark(d),
        )
        for d in kept
    ]
    print(table(("data set", "trace files", "bytes", "licence", "harnesses", "downloads", "remark"), rows, 70))
    again = sum(d.duplicate_of is not None for d in kept)
    unlicensed = sum(d.licence is None for d in kept)
    print(f"{len(kept):,} data sets, {again:,} of them hold the files of another; {unlicensed:,} state no licence")
    if kept:
        print(f"read one with: agentsignals analyze hub:{printable(kept[0].name)}")
    return 0


def _repositories(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, printable, table
    from agentsignals.errors import UsageError
    from agentsignals.ingest.repository_addresses import discover

    if not options.names:
        raise UsageError("No repository is named.", "Name a folder of clones, a list, or a saved search result.")
    data_sets = discover(options.names)
    if options.json:
        print(json_text(data_sets))
        return 0
    names = ("repository", "checkpoints in", "commits", "naming one", "remark")
    rows = [
        (
            d.place,
            ", ".join(f"{n:,} {kind} refs" for kind, n in d.layouts.items()),
            d.commits,
            d.naming,
            d.trouble or ("fork" if d.is_fork else None if d.is_here else "not fetched"),
        )
        for d in data_sets
    ]
    print(table(names, rows, 70))
    holding = [d for d in data_sets if d.layouts or not d.is_here]
    print(f"{len(data_sets):,} repositories, {sum(bool(d.layouts) for d in data_sets):,} of them hold checkpoints")
    if holding:
        print(f"bring them in with: agentsignals collect {' '.join(printable(name) for name in options.names)}")
    return 0


def _is_wanted(data_set: DataSet, options: argparse.Namespace) -> bool:
    if options.license is not None:
        stated = [s.strip().lower() for s in (data_set.licence or "none").split(",")]
        if options.license.lower() not in stated:
            return False
    if options.harness is not None and options.harness.lower() not in data_set.harnesses:
        return False
    return not (options.distinct and data_set.duplicate_of)


def _remark(data_set: DataSet) -> str:
    remarks = [f"files of {data_set.duplicate_of}"] if data_set.duplicate_of else []
    return "; ".join([*remarks, *(["gated"] if data_set.gated else [])])


VERB = Verb(
    "discover", "data sets and repositories of traces that can be read", "discover hub --license mit", arguments, run
)
