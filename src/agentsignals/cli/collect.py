"""`collect`: repositories with checkpoints, brought into the store and kept up to date."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.ingest.collection import Collection


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "repositories",
        metavar="REPOS",
        nargs="+",
        help="folders or addresses of repositories, OWNER/NAME, a folder of clones, a list, a saved search result",
    )
    parser.add_argument(
        "--list", action="store_true", help="only say which repositories these are; read and fetch none"
    )
    parser.add_argument("--no-forks", action="store_true", help="leave out what a search result calls a fork")
    parser.add_argument("--min-checkpoints", type=int, metavar="N", default=1, help="leave out those with fewer (1)")
    parser.add_argument("--min-commits", type=int, metavar="N", default=0, help="leave out those with fewer commits")
    parser.add_argument(
        "--min-linked",
        type=int,
        metavar="N",
        default=0,
        help="leave out those with fewer commits that name a checkpoint",
    )
    parser.add_argument(
        "--no-machine-prompts",
        action="store_true",
        help="leave out sessions that a program began (counted and labelled)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes that read transcripts")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import Bar, json_text, printable
    from agentsignals.ingest.collection import Filters, collect
    from agentsignals.ingest.repository_addresses import named_repositories

    if options.list:
        listed = named_repositories(options.repositories)
        print(json_text(listed) if options.json else "\n".join(printable(c.place) for c in listed))
        return 0
    filters = Filters(
        not options.no_forks,
        options.min_checkpoints,
        options.min_commits,
        options.min_linked,
        not options.no_machine_prompts,
    )
    bar = Bar(options.quiet)
    try:
        collection = collect(options.repositories, options.store, filters, jobs=options.jobs, progress=bar)
    finally:
        bar.close()
    print(json_text(collection) if options.json else _text(collection))
    return (
        1
        if collection.repositories and all(repository.status == "failed" for repository in collection.repositories)
        else 0
    )


def _text(collection: Collection) -> str:
    from agentsignals.cli.output import table

    names = ("repository", "status", "checkpoints", "new", "commits", "new", "linked", "sessions", "why")
    rows = [
        (o.repo, o.status, o.checkpoints, o.new_checkpoints, o.commits, o.new_commits, o.linked, o.sessions, o.reason)
        for o in collection.repositories
    ]
    lines = [table(names, rows), ""]
    lines.append(", ".join(f"{n:,} {status}" for status, n in collection.by_status.items()) or "no repository")
    if collection.by_status.keys() == {"unchanged"}:
        lines.append("nothing is new")
    if collection.machine_sessions:
        n_sessions = collection.sessions + collection.sessions_left_out
        lines.append(
            f"{collection.machine_sessions:,} of {n_sessions:,} sessions were begun by a program"
            f" (label machine_prompts), {collection.sessions_left_out:,} of them left out"
        )
    if collection.filtered:
        lines.append("left out: " + ", ".join(f"{n:,} {reason}" for reason, n in collection.filtered.items()))
    return "\n".join(lines)


VERB = Verb("collect", "bring repositories with checkpoints into the store", "collect ~/src list.txt", arguments, run)
