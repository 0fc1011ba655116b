"""`formats`: what is read, what each format rests on and can't say, and which versions the store has met."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from agentsignals.formats import Format


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="one format, with all that is known of it")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text, printable, table
    from agentsignals.formats import by_name, formats
    from agentsignals.ingest.maintenance import agent_versions

    met = agent_versions(options.store)
    chosen = [by_name(options.name)] if options.name else list(formats().values())
    rows = [_described(f, met.get(f.name, {})) for f in chosen]
    if options.json:
        print(json_text(rows[0] if options.name else rows))
    elif options.name:
        print(_lines(rows[0]))
    else:
        shown = [(r["name"], r["rests_on"], _few(r["met"]), " ".join(r["limits"])) for r in rows]
        print(table(("format", "rests on", "versions in the store", "mind"), shown, 70))
        print(printable(f"{len(rows)} formats; `agentsignals formats NAME` shows one whole"))
    return 0


def _described(made: Format, met: dict[str, int]) -> dict[str, Any]:
    card = made.card
    return {
        "name": made.name,
        "parser": made.version,
        "homes": list(made.profile.homes) if made.profile is not None and made.is_own else [],
        "rests_on": card.rests_on if card is not None else "unknown",
        "material": list(card.material) if card is not None else [],
        "limits": list(card.limits) if card is not None else [],
        "met": met,
    }


def _lines(row: dict[str, Any]) -> str:
    """A format's card, a line a fact."""
    from agentsignals.cli.output import printable

    lines = [("format", f"{row['name']}, parser {row['parser']}")]
    lines += [("home", home) for home in row["homes"]]
    lines += [(lot.kind, str(lot)) for lot in row["material"]]
    lines += [("mind", limit) for limit in row["limits"]]
    lines += [("store", f"{n:,} sessions of {version or 'no version said'}") for version, n in row["met"].items()]
    return "\n".join(printable(f"{name:10}  {value}") for name, value in lines)


def _few(met: dict[str, int], most: int = 3) -> str:
    """The versions of most sessions."""
    named = [f"{version or 'none said'} ({n:,})" for version, n in list(met.items())[:most]]
    return ", ".join([*named, *([f"{len(met) - most} more"] if len(met) > most else [])])


VERB = Verb("formats", "what is read, what it rests on, which versions were met", "formats claude-code", arguments, run)
