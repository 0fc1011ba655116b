"""Overview, finding, files, and the sessions behind a number."""

from __future__ import annotations

import shlex
from collections import Counter
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec.structs import replace

from agentsignals.ingest.plan import unknown_fields_by_version, versions_by_format
from agentsignals.questions import findings, ranking
from agentsignals.questions.compare import QUERIES, resolved_groups
from agentsignals.questions.question import Inputs, Kind
from agentsignals.questions.ranking import MORE, Answer, Bounds, Findings, ResolvedGroup, amount
from agentsignals.redaction import redacted_in
from agentsignals.signals.catalog import catalogue
from agentsignals.ui.figures import cards, overall, session_rows
from agentsignals.ui.filter import DAYS, WITH, Filter, behind_key, filtered
from agentsignals.ui.page import Page, Query, Route, Where, part_of, short_ids, sql
from agentsignals.ui.snapshot import Snapshot

MOST_ROWS = 200
"""Rows of evidence on a page; the command line has them all."""
MOST_SESSIONS = 5
MOST_OPEN = 5
"""Findings, projects and models that the first screen lists."""


def of(snapshot: Snapshot, context: str) -> Findings:
    """Return the findings about a context, as they are cached for this state of the store."""
    return snapshot.kept(("findings", context), lambda: findings.findings(snapshot.store, context))


def finding_page(snapshot: Snapshot, query: Query, id: str) -> Page:  # noqa: A002  (the answer's field)
    """A sentence with how sure it is, what would make it wrong, its sessions, and the rows that make it up."""
    context = query.choice("context", ("product", "eval"), snapshot.main_context)

    def asked() -> dict[str, Any]:
        made = findings.answer(snapshot.store, id, context)
        of_context = context if snapshot.contexts - {context} else ""
        evidence = snapshot.rows(sql("finding.rows", cause=made.cause, most=MOST_ROWS + 1), context=of_context)
        of_rows = [each["session_id"] for each in evidence if each.get("session_id")]
        ids = list(made.sessions) or list(dict.fromkeys(of_rows))[:MOST_SESSIONS]
        known = {row["session_id"]: row for row in snapshot.rows(sql("sessions.by_id"), {"ids": ids})} if ids else {}
        parts = {each: amount(made.by_session[each], made.unit.removesuffix(MORE)) for each in made.by_session}
        sessions = [{**known[each], "part": parts.get(each, "")} for each in ids if each in known]
        for row in sessions:  # the row that contributes most
            row["seq"] = next((e.get("seq") for e in evidence if e.get("session_id") == row["session_id"]), None)
        return {
            "made": redacted_in(made),
            "amount": amount(made.size, made.unit),
            "evidence": redacted_in(evidence[:MOST_ROWS]),
            "is_cut": len(evidence) > MOST_ROWS,
            "sessions": redacted_in(sessions),
            "units": _units(made),
            "key": f"finding:{id}{f'@{context}' if context != snapshot.main_context else ''}",
            "short_ids": short_ids(snapshot.store.manifest.sessions),
        }

    filled = snapshot.kept(("finding", id, context), asked)
    return Page("finding.html.j2", filled["made"].question, filled)


def _units(made: Answer) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {"cost_usd": "usd", "more_usd": "usd", "waited_s": "seconds", "ran_s": "seconds"}
    if made.part and made.part not in kinds:
        kinds[made.part] = "number"
    return kinds


# The first page: the summary of each context under a filter; then cost, failures and outcomes; then what was read.

WAIT_S = 2.0
"""So long the page waits for the findings, which take ten seconds over 5,000 sessions the first time."""


def overview_page(snapshot: Snapshot, query: Query) -> Page:
    """Show the summary of each context, and figures over the sessions that fit the filter."""
    filter_ = filtered(query, snapshot)
    counts = snapshot.store.manifest.contexts()
    largest = max(sorted(counts), key=lambda name: counts[name], default=snapshot.main_context)
    context = query.choice("context", ("product", "eval"), largest)
    chosen_contexts = (
        [filter_.words["context"]] if filter_.words.get("context") in snapshot.contexts else snapshot.contexts
    )
    of_context = filter_.of_context(context)
    days = query.choice("days", DAYS)
    is_range = bool(days) and not filter_.words.keys() - {"context", "days"}
    of_range = snapshot.of_last(int(days)) if is_range else snapshot
    is_chosen = not is_range and bool(filter_.words.keys() - {"context"})

    def counted() -> dict[str, Any]:
        rows = {each: session_rows(snapshot, filter_.of_context(each)) for each in snapshot.contexts}
        return {
            "totals": {
                each: ranking.totals(
                    (
                        row["started_at"],
                        row["cost_usd"],
                        row["is_bound"] or row["unpriced"],
                        row["answered"],
                        row["failed"],
                    )
                    for row in held
                )
                for each, held in rows.items()
            },
            "resolved": _resolved(snapshot, filter_) if "eval" in snapshot.contexts else [],
            "overall": overall(snapshot, of_context, rows.get(context, [])),
        }

    def read() -> dict[str, Any]:
        declared = {signal.path: signal for signal in catalogue().values()}
        corpus = snapshot.rows(sql("overview.corpus_values"))
        return {
            "store": str(snapshot.store.folder),
            "formats": snapshot.rows(sql("files.formats")),
            "skipped": skipped(snapshot),
            "no_traces": len(snapshot.store.manifest.no_traces()),
            "corpus": [row | {"one": declared[row["signal"]]} for row in corpus if row["signal"] in declared],
        }

    held = snapshot.recent(("overview", context, *sorted(filter_.words.items())), counted)
    parts = []
    for each in sorted(chosen_contexts, key=lambda name: -held["totals"][name].sessions):
        made = of_range.soon(("findings shown", each), partial(of, of_range, each), WAIT_S)
        made_or_none = made or Findings(answers=[], sessions=0, context=each, bill="", looked_at={}, bounds=Bounds())
        most = MOST_OPEN if len(made_or_none.answers) <= MOST_OPEN else ranking.MOST_FINDINGS
        shown = ranking.of_context(made_or_none, held["totals"][each], most)
        if each == "eval":  # not the findings', which are not there yet, or of all attempts
            shown = replace(shown, resolved=held["resolved"])
        in_context = filter_.of_context(each)
        parts.append({"of": in_context, "made": made, "part": shown, "cards": cards(shown, in_context)})
    filled = {
        "filter": filter_,
        "of": of_context,
        "context": context,
        "is_chosen": is_chosen,
        "parts": parts,
        "is_pending": any(part["made"] is None for part in parts),
        "others": sorted(snapshot.contexts - {context}),
        "is_empty": not snapshot.store.manifest.sessions,
        "overall": held["overall"],
        "totals": held["totals"].get(context),
        "wheres": [
            (
                title,
                [(g.name or "not recorded", g.link, g.cost.written, g.of_all) for g in groups if g.of_all][:MOST_OPEN],
            )
            for title, wanted in (("Cost by project", "repo"), ("Cost by model", "model"))
            for word, _, groups, _ in held["overall"].groups
            if word == wanted
        ],
        **snapshot.kept("overview read", read),
    }
    return Page("overview.html.j2", "Overview", filled)


def _resolved(snapshot: Snapshot, filter_: Filter) -> list[ResolvedGroup]:
    """What each candidate resolved of the attempts that the filter leaves."""
    of_eval = filter_.of_context("eval")
    among = {row["session_id"] for row in snapshot.rows(of_eval.sessions, of_eval.where.values)}
    rows = {
        name: [row for row in snapshot.rows(asked) if row["session_id"] in among] for name, asked in QUERIES.items()
    }
    return resolved_groups(Inputs(rows=rows))


def skipped(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Count skipped records and their files by reason, most records first. A reason may hold anything."""
    records: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for row in snapshot.rows(sql("files.skipped")):
        for reason, n in msgspec.json.decode(row["skipped_reasons"] or "{}", type=dict[str, int]).items():
            records[reason] += n * row["n"]
            files[reason] += row["n"]
    return [
        {"reason": r, "n": n, "artifacts": files[r]} for r, n in sorted(records.items(), key=lambda p: (-p[1], p[0]))
    ]


# The files that were read, and what of them could not be.

SIZE = 100
_LONGEST_ENDING = 12


def files_page(snapshot: Snapshot, query: Query) -> Page:
    """Files that fit the filter, those with most skipped records first."""
    reasons = snapshot.kept("skipped", lambda: skipped(snapshot))
    formats = [row["kind"] for row in snapshot.rows(sql("files.kinds"))]
    chosen = {
        "format": query.choice("format", formats),
        "reason": query.choice("reason", [row["reason"] for row in reasons]),
    }
    where = Where()
    where.choose("kind = $format", format=chosen["format"])
    where.choose("contains(lower(path), lower($path))", path=query.text("path"))
    where.choose("list_contains(json_keys(skipped_reasons), $reason)", reason=chosen["reason"])
    total = snapshot.rows(sql("files.count", where=where.text()), where.values)[0]["n"]
    part = part_of(query, SIZE, total)
    rows = snapshot.rows(sql("files.page", where=where.text()), {**where.values, "size": SIZE, "start": part.start})
    for row in rows:
        row["reasons"] = msgspec.json.decode(row["skipped_reasons"] or "{}", type=dict[str, int])
    kinds = snapshot.store.manifest.kinds()
    # Files under the sources that are no traces are counted by their ending.
    endings = (PurePosixPath(uri).suffix.lower() for uri in snapshot.store.manifest.no_traces())
    filled = {
        "rows": rows,
        "reasons": reasons,
        "formats": formats,
        "chosen": chosen,
        "path": query.text("path"),
        "part": part,
        "no_traces": Counter(e if e and len(e) <= _LONGEST_ENDING else "no ending" for e in endings).most_common(),
        "unknown_fields": unknown_fields_by_version(kinds),
        "versions": versions_by_format(kinds),
    }
    return Page("artifacts.html.j2", "Files", filled)


# The sessions that a number counts, each with what it has of it.

SIZE_OF_BEHIND = 50
_NO_KEY = "Every number of a study, a finding or a comparison leads to the sessions it counts."


def behind_page(snapshot: Snapshot, query: Query) -> Page:
    """The sessions of a key, largest part first."""
    key = query.text("key")
    if not key:
        return Page("note.html.j2", "Behind a number", {"note": _NO_KEY, "where": "/studies", "there": "Studies"})
    made = behind_key(snapshot, key)
    whole = behind_key(snapshot, key.removeprefix(WITH))
    ids = list(made.parts)
    part = part_of(query, SIZE_OF_BEHIND, len(ids))
    shown = ids[part.start : part.end]
    rows = {row["session_id"]: row for row in snapshot.rows(sql("sessions.by_id"), {"ids": shown})} if shown else {}
    filled = {
        "key": key,
        "whole_key": key.removeprefix(WITH),
        "made": made,
        "of_all": len(whole.parts),
        "with_part": len(whole.partly().parts),
        "rows": [rows[session_id] for session_id in shown if session_id in rows],
        "part": part,
        "command": f"agentsignals sessions --behind {shlex.quote(key)}",
    }
    return Page("behind.html.j2", made.title, filled)


PAGES = (
    Route(("finding", "*"), finding_page, below="/", is_ranged=True),
    Route((), overview_page, "Overview", 10),
    Route(("artifacts",), files_page, "Files", 80),
    Route(("behind",), behind_page, below="/studies", is_ranged=True),
)
