"""Verbs about the installation and what can be read: `doctor`, `formats`, `forget`."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentsignals import __version__
from agentsignals.cli.analyze import NEW_FIELDS, drift_line, skip_advice
from agentsignals.cli.output import MEND, counted, fields, json_text, printable, table
from agentsignals.errors import AgentSignalsError, PriceError, StoreError, UsageError, install_command
from agentsignals.formats import homes, unread_homes
from agentsignals.ingest.identity import REPEATED_FILE, REPEATED_RECORD
from agentsignals.ingest.pipeline import AgentHome, agent_homes
from agentsignals.ingest.plan import unknown_fields_by_version
from agentsignals.model import prices
from agentsignals.private_files import exposed, exposed_below
from agentsignals.questions.question import times
from agentsignals.sources import OUT_OF_MEMORY
from agentsignals.sources.local import existing_paths
from agentsignals.store import Store, local_folder
from agentsignals.store.disk import EXPOSURE_FILE, exposure


class Check(Struct):
    """One thing looked at."""

    name: str
    status: str
    """`ok`, `missing` (only not there), `not read` (an agent's that is known and not read) or `problem`."""
    finding: str = field(name="found")
    advice: str = ""
    home: AgentHome | None = None
    """Figures of an agent's folder or database."""


DAMAGED = ("store", "damaged", "lost")
"""Checks that answer whether the store is whole; `doctor` leaves with 1 when one of them is a problem."""


def checks(store_folder: str | None, *, repair: bool = False) -> list[Check]:
    """Return every check, in order. `repair`: the store is mended first."""
    needed = ", ".join(f"{name} {metadata.version(name)}" for name in ("msgspec", "pyarrow", "duckdb"))
    made = [
        Check("agentsignals", "ok", f"{__version__} on Python {platform.python_version()} ({sys.platform})"),
        Check("libraries", "ok", needed),
        Check("price table", "ok", f"version {prices.VERSION}, of {prices.DATE}"),
    ]
    try:
        if (n := len({id(price) for price in prices.own_prices().exact.values()})) > 0:
            made.append(Check("own prices", "ok", f"of {times(n, 'model')}"))
    except PriceError as problem:
        made.append(Check("own prices", "problem", problem.message, problem.hint))
    for name, (package, without) in EXTRAS.items():
        try:
            made.append(Check(name, "ok", f"{package} {metadata.version(package)}"))
        except metadata.PackageNotFoundError:
            advice = install_command(name)
            made.append(Check(name, "missing", f"no {package}: {without}", advice))
    made.append(_others(metadata.requires("agentsignals") or []))
    return [*made, *_added(), *_agents(), *(_repaired(store_folder) if repair else []), *_store(store_folder)]


EXTRAS = {
    "frames": ("polars", "no Polars frames in Python; `store.sql(…)` works without"),
}
"""Extras of everyday use: the package that makes each, and what is not there without it."""
_OF_EXTRA = re.compile(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]")
_OF_DEVELOPERS = re.compile(r"dev|docs|.*-dev")


def _others(requirements: Iterable[str]) -> Check:
    """Check the other extras: `requirements` is what the package says it needs."""
    packages: dict[str, list[str]] = {}
    for match in filter(None, map(_OF_EXTRA.match, requirements)):
        if match[2] not in EXTRAS and not _OF_DEVELOPERS.fullmatch(match[2]):
            packages.setdefault(match[2], []).append(match[1])
    there = [name for name, needed in packages.items() if all(any(metadata.distributions(name=n)) for n in needed)]
    rest = [name for name in packages if name not in there]
    installed, missing = (", ".join(sorted(names)) or "none" for names in (there, rest))
    advice = f"for example {rest[0]}: {install_command(rest[0])}" if rest else ""
    return Check("other extras", "ok", f"installed: {installed}; not installed: {missing}", advice)


def _added() -> list[Check]:
    """Check each unit of another package: a format, signal, study, finding, export, labeller, engine or source."""
    from agentsignals.export import WRITERS
    from agentsignals.formats import FORMATS
    from agentsignals.ingest.engine import ENGINES
    from agentsignals.labels.labellers import LABELLERS
    from agentsignals.model.registry import Registry
    from agentsignals.questions.findings import FINDINGS
    from agentsignals.questions.studies import STUDIES
    from agentsignals.signals.catalog import SIGNALS, catalogue
    from agentsignals.sources import SOURCES

    catalogue()
    registries: tuple[Registry[Any], ...] = (
        FORMATS, SOURCES, SIGNALS, STUDIES, FINDINGS, WRITERS, LABELLERS, ENGINES,
    )  # fmt: skip
    rows = []
    for registry in registries:
        for place in registry.places.values():
            if place.distribution:
                is_usable = registry.load(place) is not None and place.name not in registry.broken
                finding = str(place) if is_usable else registry.broken[place.name]
                rows.append(Check(f"{registry.kind} {place.name}", "ok" if is_usable else "problem", finding))
    return rows


def _agents() -> list[Check]:
    """Every home of every agent: what is in it, or that it is not there."""
    here = agent_homes()
    rows = []
    for name, patterns in homes().items():
        rows += [_home(home) for home in here if home.agent == name and home.is_read]
        absent = [pattern for pattern in patterns if not existing_paths([pattern])]
        rows += [Check(name, "missing", f"no {', '.join(absent)}")] if absent else []
    not_read = [home for home in here if not home.is_read]
    rows += [_home(home) for home in not_read]
    of_others = {name: patterns for name, patterns in unread_homes().items() if all(h.agent != name for h in not_read)}
    if of_others:
        named = "; ".join(f"{name}: {', '.join(patterns)}" for name, patterns in of_others.items())
        rows.append(Check("agents not read", "missing", f"no {named}"))
    return rows


def _home(home: AgentHome) -> Check:
    sessions = ", ".join(
        f"{times(n, 'session')}" if name == home.agent else f"{n:,} {name}" for name, n in home.sessions.items()
    )
    size = f"{home.bytes / 1e6:,.1f} MB" if home.bytes >= 1e6 else f"{home.bytes / 1e3:,.1f} kB"
    inside = "; ".join(filter(None, [sessions, f"{times(home.files, 'file')}, {size}", counted(home.left)]))
    finding = f"{home.path}: {inside if home.files else 'empty'}"
    if not home.is_read:
        return Check(home.agent, "not read", finding, skip_advice()["agent_not_read"], home)
    if "no_permission" in home.left:
        return Check(home.agent, "problem", finding, "some files cannot be read: check their permissions", home)
    return Check(home.agent, "ok", finding, f"agentsignals analyze {home.agent}" if home.sessions else "", home)


def _store(folder: str | None) -> list[Check]:
    """Check the store: its files, what was skipped or lost on reading, and internal errors."""
    try:
        place = local_folder(folder)
    except StoreError as problem:
        return [Check("store", "problem", problem.message, problem.hint)]
    try:
        store = Store(place)
        store.check_files(thorough=True)
        strays = store.strays()
    except StoreError as problem:
        status = "problem" if place.is_dir() and any(place.iterdir()) else "missing"
        return [Check("store", status, problem.message, problem.hint)]
    manifest = store.manifest
    skipped: dict[str, int] = {}
    kinds = manifest.kinds()
    for kind in kinds:
        if kind.is_trace:
            for reason, n in kind.skipped.items():
                if reason in (REPEATED_FILE, REPEATED_RECORD, "not_sessions"):
                    continue
                skipped[reason] = skipped.get(reason, 0) + n * kind.files
    status = "problem" if store.warnings else "ok"
    rows = [
        Check(
            "store", status, f"{place}: {times(len(manifest.sessions), 'session')} in {len(manifest.shards):,} shards"
        )
    ]
    rows += [_privacy(place), *(Check("damaged", "problem", line, MEND) for line in store.warnings)]
    rows += [
        Check(
            "stray", "problem", str(path.relative_to(place)), "not part of the store; `doctor --repair` moves it aside"
        )
        for path in strays
    ]
    if not os.access(place, os.W_OK):
        rows.append(Check("store writable", "problem", str(place), "choose another folder with --store"))
    for reason, n in sorted(skipped.items(), key=lambda p: -p[1]):
        rows.append(Check("skipped", "problem", f"{n:,} {reason}", skip_advice().get(reason, "")))
    rows += [
        Check("new fields", "problem", drift_line(unknown), NEW_FIELDS) for unknown in unknown_fields_by_version(kinds)
    ]
    errors = {w for shard in manifest.shards.values() for w in shard.internal_errors}
    for what in sorted(errors | {f"{uri}: {error}" for uri, error in manifest.file_errors()}):
        short = OUT_OF_MEMORY in what
        advice = skip_advice()["out_of_memory"] if short else "a bug in agentsignals: please report it"
        rows.append(Check("memory" if short else "internal error", "problem", what, advice))
    return rows + _attempts(store)


def _privacy(place: Path) -> Check:
    """Check that no other user has permissions on the store. Opening it took away what could be taken away."""
    if was := exposure(place):
        advice = "change the passwords in these sessions: others could read them"
        return Check("privacy", "problem", f"{was}", f"{advice}; then delete {place / EXPOSURE_FILE}")
    found = [each for each in exposed_below(place) if each.path != str(place)]
    if found:
        open_to_all = times(len(found), "file or folder", "files and folders")
        finding = f"other users have permissions on {open_to_all}, such as {found[0].path}"
        return Check("privacy", "problem", finding, "the file system refuses to change them: move the store elsewhere")
    if exposed(place):
        finding = (
            f"{place} also holds other files, so its permissions were not changed; the store's own files are private"
        )
        return Check("privacy", "ok", finding, "choose a separate folder with --store")
    return Check("privacy", "ok", "files 0600, folders 0700: no other user can read it")


def _repaired(folder: str | None) -> list[Check]:
    from agentsignals.ingest.maintenance import repair

    try:
        done = repair(folder)
    except StoreError as problem:
        return [Check("repair", "problem", problem.message, problem.hint)]
    rows = [Check("repair", "ok", line) for line in done.mended] or [Check("repair", "ok", "nothing to repair")]
    rows += [Check("lost", "problem", line) for line in done.lost]
    return rows + [
        Check("aside", "ok", str(path), "damaged files; delete them when you no longer need them")
        for path in done.aside
    ]


def _attempts(store: Store) -> list[Check]:
    if "eval" not in store.manifest.contexts():
        return []
    query = "SELECT count(*), count(*) FILTER (WHERE NOT has_transcript) FROM attempts"
    try:
        ((n_attempts, without),) = store.sql(query).fetchall()
    except AgentSignalsError as problem:
        return [Check("attempts", "problem", problem.message, problem.hint)]
    if not without:
        return [Check("attempts", "ok", f"{n_attempts:,}, each with its session JSONL")]
    message = f"{without:,} of {n_attempts:,} have no session JSONL of the agent: no tokens, reasoning or tool sequence"
    return [Check("attempts", "problem", message, COLLECT_SESSIONS)]


COLLECT_SESSIONS = (
    "have the harness collect the agent's session folder: add to its artifact config "
    '{ "source": "/root/.subq/agent/sessions", "destination": "sessions", "type": "directory" } '
    "(source: where this agent keeps its sessions in the container)"
)
"""Advice that closes the gap, as Agent Signals gives it."""


# `formats`: what is read, what each format rests on and can't say, and which versions the store has met.


_WHOLE = 1_000
"""Characters of a cell that is wrapped, not cut."""
_VERSIONS = 3
"""Versions of a format in the table: those of most sessions."""


def run_formats(options: argparse.Namespace) -> int:
    from agentsignals.formats import by_name, card_of, formats
    from agentsignals.ingest.maintenance import agent_versions

    met = agent_versions(options.store)
    chosen = [by_name(options.name)] if options.name else list(formats().values())
    rows = []
    for f in chosen:
        card = card_of(f)
        row: dict[str, Any] = {
            "name": f.name,
            "parser": f.version,
            "homes": list(f.profile.homes) if f.profile is not None and f.is_own else [],
            "rests_on": card.rests_on if card is not None else "unknown",
            "material": list(card.material) if card is not None else [],
            "limits": list(card.limits) if card is not None else [],
            "met": met.get(f.name, {}),
        }
        rows.append(row)
    if options.json:
        print(json_text(rows[0] if options.name else rows))
    elif options.name:
        lines = [("format", f"{row['name']}, parser {row['parser']}")]
        lines += [("home", home) for home in row["homes"]]
        lines += [(lot.kind, str(lot)) for lot in row["material"]]
        lines += [("limits", limit) for limit in row["limits"]]
        lines += [
            ("store", f"{times(n, 'session')} of {version or 'no version recorded'}")
            for version, n in row["met"].items()
        ]
        print(fields(lines))
    else:
        shown = []
        for row in rows:
            named = [f"{version or 'not recorded'} ({n:,})" for version, n in row["met"].items()]
            few = [*named[:_VERSIONS], *([f"{len(named) - _VERSIONS} more"] if len(named) > _VERSIONS else [])]
            shown.append((row["name"], row["rests_on"], ", ".join(few), " ".join(row["limits"])))
        print(
            table(
                ("format", "rests on", "versions in the store", "limits"),
                shown,
                _WHOLE,
                optional=("versions in the store",),
            )
        )
        print(printable(f"{len(rows)} formats; `agentsignals formats NAME` describes one in full"))
    return 0


# `forget`: sessions that the store is to hold no longer.


def run_forget(options: argparse.Namespace) -> int:
    from agentsignals.ingest.maintenance import forget

    if not options.sessions and not options.deleted:
        raise UsageError("No session was named.", "Name sessions, or give --deleted for those whose files are gone.")
    gone = forget(options.store, options.sessions, deleted=options.deleted)
    if options.json:
        print(json_text(gone))
        return 0
    print(f"forgotten   {times(len(gone.sessions), 'session')}")
    if gone.still_there:
        print(f"still there {len(gone.still_there):,} of their files, which the next run reads again:")
        print("\n".join(f"            {printable(uri)}" for uri in gone.still_there))
    return 0


def run_doctor(options: argparse.Namespace) -> int:
    checked = checks(options.store, repair=options.repair)
    if options.json:
        print(json_text(checked, with_damage=False))
    else:
        rows = [(c.name, c.status, c.finding, c.advice) for c in checked]
        print(table(("check", "status", "found", "what to do"), rows, _WHOLE, optional=("status",)))
    return 1 if any(c.name in DAMAGED and c.status == "problem" for c in checked) else 0
