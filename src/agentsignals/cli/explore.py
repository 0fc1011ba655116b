"""Verbs that show a store: `sessions`, `search`, `findings`, `show`, `explain`, `query`, `report`, `inventory`."""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal
from itertools import islice
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agentsignals.cli.analyze import named_again, store_with_sessions
from agentsignals.cli.output import (
    Bar,
    json_text,
    named_in,
    print_result,
    printable,
    table,
    write_csv,
)
from agentsignals.errors import NothingFound, QueryError, StoreError, UsageError
from agentsignals.formats import resumed
from agentsignals.model import MAIN, Event, Session, ToolCall, to_iso
from agentsignals.model.registry import did_you_mean
from agentsignals.questions.question import AT_LEAST, MISSING, Kind, cut, formatted, number, times
from agentsignals.store import Store, resolve_folder

if TYPE_CHECKING:
    from agentsignals.model.prices import CostLine
    from agentsignals.questions.ranking import Answer, Findings
    from agentsignals.store.fulltext import Results


_SAID_CHARS = 400
_QUIET = frozenset(("thinking", "meta", "tool_result"))


def timeline(session: Session, everything: bool = False) -> str:
    """Header, then what happened in order; with `everything` also thinking, results, subagents and side notes."""
    from agentsignals.store.tables import totals

    calls = {c.seq: c for c in session.tool_calls}
    sums = totals(session)
    bound = AT_LEAST if sums["visible_output_tokens"] is not None else ""
    # The cost: a lower bound with what it lacks, and what the agent recorded otherwise.
    cost, lacks, replaced = sums["cost_usd"], sums["unpriced"], sums["replaced_cost_usd"]
    costs = [f"{AT_LEAST if lacks else bound}{formatted(cost, 'usd')}" if cost is not None else ""]
    if cost is None and replaced is not None:
        costs = ["unknown"]
    costs += [f"without {lacks}"] if lacks else []
    costs += [f"the agent recorded {formatted(replaced, 'usd')}"] if replaced is not None else []
    tokens = [(sums[f"{kind}_tokens"], kind.replace("_", " ")) for kind in ("input", "output", "cache_read")]
    facts = {
        "session": session.session_id,
        "title": session.title,
        "agent": f"{session.agent} {session.agent_version or ''}".strip(),
        "model": session.model,
        "where": session.repo or session.cwd,
        "branch": session.branch,
        "when": f"{to_iso(session.started_at) or 'unknown'} – {to_iso(session.ended_at) or 'unknown'}",
        "counts": f"{sum(turn.is_prompt for turn in session.turns)} prompts,"
        f" {sum(c.thread == MAIN for c in session.tool_calls)} tool calls,"
        f" {len({(e.seq, e.path) for e in session.edits if e.thread == MAIN})} edits",
        "tokens": ", ".join(f"{bound if kind == 'output' else ''}{n:,} {kind}" for n, kind in tokens if n is not None),
        "cost": ", ".join(filter(None, costs)),
        "resume": resumed(session.context, session.format, session.session_id, session.cwd, session.parent_session_id),
    }
    lines = [f"{name:8} {printable(str(value))}" for name, value in facts.items() if value]
    shown = (event for event in session.events if is_shown(event, everything))
    return "\n".join([*lines, "", *(_line(event, calls.get(event.seq), session) for event in shown)])


def is_shown(event: Event, everything: bool) -> bool:
    """Return whether an event has a line."""
    return everything or (event.thread == MAIN and event.kind not in _QUIET)


def _line(event: Event, call: ToolCall | None, session: Session) -> str:
    """Return an event as a line of `show`: number, time, thread, and its text or call."""
    clock = (to_iso(event.timestamp) or "")[11:19] or "--:--:--"
    place = "" if event.thread == MAIN else f"[{event.thread}] "
    if call is not None:
        from agentsignals.views.calls import call_summary

        summary = call_summary(call.class_, call.path, call.command, call.arguments)
        hunks = [e for e in session.edits if e.seq == call.seq and e.added is not None and e.removed is not None]
        added, removed = sum(e.added or 0 for e in hunks), sum(e.removed or 0 for e in hunks)
        text = f"{call.name} {summary}{f' +{added} -{removed}' if hunks else ''}".strip()
        mark = {"ok": "", "none": " (no result)"}.get(call.status, f" ({call.error_class or call.status})")
        return f"{event.seq:5} {clock}   {place}→ {_cut(text, 120)}{mark}"
    if event.kind == "human_turn" and event.turn is not None:
        kind = session.turns[event.turn].kind
        return f"\n{event.seq:5} {clock} turn {event.turn + 1} ({kind})\n      {_cut(event.text or '', _SAID_CHARS)}"
    text = _cut(event.text or "", _SAID_CHARS if event.kind == "text" else 120)
    return f"{event.seq:5} {clock}   {place}{event.kind}: {text}"


def _cut(text: str, n: int) -> str:
    return cut(printable(" ".join(text.split())), n)


# `sessions`: those of the store, the last active first.

_COLUMNS = (
    "session_id, agent, model, started_at, ended_at, n_prompts, n_tool_calls, n_edits, output_tokens, cost_usd,"
    " visible_output_tokens, unpriced, replaced_cost_usd, repo, cwd, title, format, context, parent_session_id"
)
_LONGEST = 300
"""Characters of a first prompt."""


_SHOWN = ("session", "began", "last active", "agent", "model", "prompts", "calls", "edits", "output", "cost", "where",
          "title")  # fmt: skip
_OF_ATTEMPTS = ("task_id", "outcome", "reward")
"""Columns of attempts, which are listed where one is among the sessions."""


def run_sessions(options: argparse.Namespace) -> int:
    from agentsignals.questions.ranking import sessions_sql
    from agentsignals.sources.local import deleted_files
    from agentsignals.store.index import sessions_only_in
    from agentsignals.store.query import rows
    from agentsignals.ui.page import short_ids

    if options.limit < 0:
        raise UsageError(f"--limit {options.limit} is below 0.", "Give a number of rows.")
    store = store_with_sessions(options)
    condition, order, behind = f"({options.where})", "coalesce(ended_at, started_at) DESC NULLS LAST", None
    if options.behind:
        from agentsignals.ui.filter import behind as sessions_behind

        behind = sessions_behind(store, options.behind)
        condition, order = f"list_contains($1, session_id) AND {condition}", "list_position($1, session_id)"
    attempts = f"SELECT session_id, {', '.join(_OF_ATTEMPTS)} FROM attempts"  # noqa: S608  (our own columns)
    query = (
        f"SELECT {_COLUMNS}, {', '.join(_OF_ATTEMPTS)}, total FROM (SELECT *, count(*) OVER () AS total FROM sessions"  # noqa: S608  (the person's own SQL)
        f" WHERE {condition} ORDER BY {order}, session_id LIMIT {options.limit:d}) LEFT JOIN ({attempts})"
        f" USING (session_id) ORDER BY {order}, session_id"
    )
    values = None if behind is None else [list(behind.parts)]
    names, counted = rows(store, query, values=values)
    prompts = {}
    if counted:
        among = sessions_sql([row[0] for row in counted])
        beginning = f"SELECT session_id, left(text, {_LONGEST}) FROM turns WHERE turn = 0 AND {among}"  # noqa: S608  (quoted by `sessions_sql`)
        prompts = dict(rows(store, beginning)[1])
    listed = [dict(zip(names[:-1], row, strict=False)) | {"first_prompt": prompts.get(row[0])} for row in counted]
    if behind is not None:
        listed = [{"counts": behind.words(session["session_id"])} | session for session in listed]
    if not listed and options.limit and not (behind and behind.closed):
        raise NothingFound("No session meets the conditions.", "`agentsignals sessions` without conditions lists all.")
    if options.json:
        of = ("context", "format", "session_id", "cwd", "parent_session_id")
        print(json_text([session | {"resume": resumed(*(session[name] for name in of))} for session in listed]))
        return 0
    beginnings = short_ids(store.manifest.sessions)
    first = () if behind is None else ("counts",)
    of_attempts = _OF_ATTEMPTS if any(session["task_id"] or session["outcome"] for session in listed) else ()
    cells = []
    for session in listed:
        # Output and cost are lower bounds where the log has output in mid-stream only; cost also without some parts.
        bound = "" if session["visible_output_tokens"] is None else AT_LEAST
        cost_bound = AT_LEAST if session["unpriced"] else bound
        output, cost = session["output_tokens"], session["cost_usd"]
        row = (
            *(session[name] for name in first),
            beginnings.get(session["session_id"], session["session_id"]),
            *(session[name] for name in of_attempts),
            *(at and f"{at:%Y-%m-%d %H:%M}" for at in (session["started_at"], session["ended_at"])),
            *(session[name] for name in ("agent", "model", "n_prompts", "n_tool_calls", "n_edits")),
            None if output is None else f"{bound}{formatted(output, 'tokens')}",
            None if cost is None else f"{cost_bound}{formatted(cost, 'usd')}",
            session["repo"] or session["cwd"],
            " ".join((session["title"] or session["first_prompt"] or "").split()),
        )
        cells.append(row)
    heads = (*first, _SHOWN[0], *(name.removesuffix("_id") for name in of_attempts), *_SHOWN[1:])
    optional = ("edits", "output", "began", "calls", "model", "where", "prompts", "agent", "reward", "task", "cost")
    shown = table(heads, cells, optional=optional, one_line=True)
    print(shown if behind is None or not behind.closed else behind.closed)
    total = counted[0][-1] if counted else 0
    if len(listed) < total:
        which = "the last active" if behind is None else "those with most"
        print(f"{len(listed):,} of {total:,} sessions, {which}; --limit {total} shows all")
    deleted = sessions_only_in(store.manifest, deleted_files(store.manifest.local_files()))
    if deleted:
        print(f"the files of {times(len(deleted), 'session')} in the store no longer exist")
    return 0


# `search`: the sessions in which something was said, asked for, run or answered.

_LONGEST_SEARCH = 110
"""Characters of a title or first prompt."""


def run_search(options: argparse.Namespace) -> int:
    from agentsignals.store.fulltext import search, without_secrets

    # One argument is the question as it stands; of several those with spaces were quoted as phrases.
    words = options.words
    if len(words) > 1:
        words = [f'"{w}"' if " " in w.strip() and not {'"', ":"} & set(w) else w for w in words]
    how = {"kinds": options.kind, "order": options.order, "limit": options.limit, "most_hits": options.hits}
    store = store_with_sessions(options)
    with Bar(options.quiet) as bar:
        results = without_secrets(search(store, " ".join(words), among=store.only, progress=bar, **how))
    if not results.sessions and options.limit:
        notes = " ".join([*results.notes, "Try fewer words, or `begin*` for the beginning of a word."])
        raise NothingFound(f"No session contains {results.text!r}.", notes)
    return print_result(options, results, _found_text)


def _found_text(results: Results) -> str:
    """Show found sessions with their matching passages, the matches between `»` and `«`."""
    lines = []
    for session in results.sessions:
        when = session.ended_at or session.started_at
        day = f"{when:%Y-%m-%d %H:%M}" if when else "no time"
        facts = [session.session_id, day, session.agent or "", session.place or "", times(session.n, "passage")]
        lines.append("  ".join(fact for fact in facts if fact))
        if about := " ".join((session.title or session.prompt or "").split())[:_LONGEST_SEARCH]:
            lines.append(f"  {about}")
        # Without its folder, which names people: what a search prints is masked.
        of = (session.context, session.format, session.session_id, None, session.parent_session_id)
        if command := resumed(*of):
            lines.append(f"  resume: {command}")
        for hit in session.hits:
            # The excerpt with its matches between signs that texts seldom have.
            made, at = "", 0
            for start, end in hit.marks:
                made += f"{hit.text[at:start]}»{hit.text[start:end]}«"
                at = end
            what = f"{hit.kind} {hit.tool}" if hit.tool else hit.kind
            lines.append(f"  {hit.seq:>5} {what}: {made}{hit.text[at:]}")
        lines.append("")
    bound = "at least " if results.is_lower_bound else ""
    n = len(results.sessions)
    shown = f"; the first {n:,} are shown, --limit {results.n_sessions} shows all" if n < results.n_sessions else ""
    lines.append(f"{bound}{times(results.n_passages, 'passage')} in {times(results.n_sessions, 'session')}{shown}")
    if results.by_kind:
        lines.append(f"by kind: {', '.join(f'{kind} {n:,}' for kind, n in results.by_kind.items())}")
    return "\n".join(printable(line) for line in [*lines, *results.notes])


# `findings`: the few sentences that matter, and what stands behind each.

_ROWS = 20
"""Rows of evidence that are shown; --json has all."""
_MOST_ROWS = 10_000


def run_findings(options: argparse.Namespace) -> int:
    from agentsignals.questions import findings
    from agentsignals.questions.ranking import Bounds

    bounds = {"effect": options.effect, "sureness": options.sureness, "false_discoveries": options.rate}
    chosen = {name: value for name, value in bounds.items() if value is not None}
    if any(not 0 <= value <= 1 for value in chosen.values()):
        raise UsageError("--effect, --sureness or --rate is out of range.", "Give a share from 0 to 1.")
    store = store_with_sessions(options)
    options.id = options.id or options.question
    topic = (options.id or "").replace("-", "_")
    if options.id is not None and topic not in findings.questions():
        from agentsignals.redaction import redacted_in
        from agentsignals.store.query import rows

        answer = findings.answer(store, options.id, options.context)
        names, evidence = rows(store, f"SELECT * FROM ({answer.cause}) LIMIT {_MOST_ROWS}", options.context)  # noqa: S608  (ours, its values quoted)
        answer = redacted_in(answer)
        if options.json:
            held = [dict(zip(names, row, strict=True)) for row in redacted_in(evidence)]
            print(json_text({"finding": answer, "evidence": held}))
            return 0
        lines = [answer.question, answer.sentence, *_below(answer)[:-1], f"Caveat: {answer.caveat}"]
        lines += [f"agentsignals show {session_id}" for session_id in answer.sessions]
        print("\n".join(printable(line) for line in lines))
        # The session, its part of the claim, and where: these stay at any width.
        kept = [name for name in ("session_id", answer.part, "seq") if name in names]
        order = [names.index(name) for name in (*kept, *(name for name in names if name not in kept))]
        shown = [tuple(row[n] for n in order) for row in redacted_in(evidence[:_ROWS])]
        print(table([names[n] for n in order], shown, 60, optional=("line", "file"), one_line=True))
        if len(evidence) > _ROWS:
            print(f"the first {_ROWS} of {len(evidence):,} rows; --json has them all")
        return 0
    made = findings.findings(store, options.context, Bounds(**chosen))
    if topic:
        of_topic = [answer for answer in made.answers if answer.id.startswith(f"{topic.replace('_', '-')}.")]
        made = replace(made, answers=of_topic, looked_at={topic: made.looked_at.get(topic, 0)}, resolved=[])
        if not of_topic:
            why = [*made.left_out.values(), *findings.why_none(store, topic, options.context)]
            checked = f"{times(made.looked_at[topic], 'candidate')} checked"
            raise NothingFound(
                f"No finding of the topic {options.id!r}: {'; '.join((checked, *why))}.",
                "`agentsignals findings` lists all.",
            )
    return print_result(options, made, lambda made: _findings_text(made, named_again(options)))


def _findings_text(made: Findings, named: str = "") -> str:
    from agentsignals.cli.analyze import elsewhere_lines
    from agentsignals.questions.ranking import head_text, of_context, resolved_text
    from agentsignals.ui.document import checks_text

    resolved = resolved_text(made.resolved)
    lines = [head_text(of_context(made)), *resolved]
    if made.bill:
        lines.append(made.bill)
    lines += elsewhere_lines(made)
    for at, answer in enumerate(made.answers):
        lines += [
            "",
            f"{at + 1}. {answer.sentence}",
            *(f"   {line}" for line in _below(answer)),
        ]
    questions = ", ".join(name.replace("_", " ") for name in made.looked_at)
    if not made.answers:
        lines += ["", f"No findings. Topics checked: {questions or 'none'}."]
    left_out = (f"not checked: {name.replace('_', ' ')}: {why}" for name, why in made.left_out.items())
    lines += ["", checks_text(made), *left_out]
    return "\n".join(named_in(printable(line), named) for line in lines)


def _below(answer: Answer) -> list[str]:
    from agentsignals.ui.document import sure_of

    return [*(text for text in (answer.details, answer.do) if text), sure_of(answer).lower(), answer.again]


_WHOLE = 1_000
"""Characters of a cell that is wrapped, not cut."""
MOST_ROWS = 1_000_000
"""Rows of a query that are held at once, which a table and a JSON document need; CSV is written row by row."""


def run_inventory(options: argparse.Namespace) -> int:
    from agentsignals.signals.catalog import caption, catalogue, inventory
    from agentsignals.store.query import rows

    measured: set[str] = set()
    needy = [signal.path for signal in catalogue().values() if signal.status != "computed"]
    among = ", ".join(["?"] * len(needy))
    query = f"SELECT DISTINCT signal FROM signals WHERE signal IN ({among}) AND absent IS NULL"  # noqa: S608  (marks)
    try:
        asked = rows(Store(options.store), query, values=needy)
        measured = {path for (path,) in asked[1]}
    except StoreError as problem:  # no store, or one that can't be read
        root = resolve_folder(options.store)
        if root.is_dir() and any(root.iterdir()):
            import logging

            logging.getLogger("agentsignals.store").warning("%s %s", problem.message, problem.hint)
    listed = inventory(options.text, options.context, options.high_value, options.status, measured)
    if not listed:
        near = did_you_mean(options.text, [signal.path for signal in catalogue().values()])
        raise NothingFound(
            f"No signal matches {options.text!r}.", f"{near} `agentsignals inventory` lists all.".lstrip()
        )
    if options.json:
        print(json_text(listed))
        return 0
    shown = [(r["path"], r["context"], r["level"], r["type"], r["unit"], r["status"], r["basis"],
              caption(r["path"]).removeprefix(r["basis"] + ", "), r["description"]) for r in listed]  # fmt: skip
    names = ("path", "context", "level", "type", "unit", "status", "basis", "validation", "meaning")
    print(table(names, shown, _WHOLE, optional=("validation", "basis", "type", "unit", "context", "level", "status")))
    print(times(len(listed), "signal"))
    return 0


def run_show(options: argparse.Namespace) -> int:
    session = Store(options.store).session(options.session)
    if options.json:
        print(json_text(session))
        return 0

    print(timeline(session, options.all))
    return 0


def run_explain(options: argparse.Namespace) -> int:
    from agentsignals.ingest.measure import explain
    from agentsignals.views.session import EXCERPT_CHARS

    explanation = explain(Store(options.store), options.session, options.signal)
    if options.json:
        print(json_text(explanation))
        return 0
    text = _value_text(explanation.value, explanation.signal)
    if explanation.absent:
        text = f"absent: {explanation.absent['reason']} {explanation.absent['detail']}".rstrip()
    bound = AT_LEAST if explanation.detail.get("at_least") else ""
    print(f"{explanation.signal} = {bound}{printable(text) if len(text) < 2000 else printable(text[:2000]) + '…'}")
    print(f"session    {printable(explanation.session)}")
    print(f"rule       {printable(explanation.rule)} (version {explanation.version})")
    if explanation.basis != "record" or explanation.validation:
        print(f"basis      {explanation.basis}; {explanation.validation or 'no meaning is claimed'}")
    if explanation.detail:
        print(f"detail     {printable(_rounded(explanation.detail))}")
    if explanation.bill:
        from agentsignals.model.prices import exact_digits, total_line

        def cells(line: CostLine, what: str) -> tuple[Any, ...]:
            bound = AT_LEAST if line.at_least else ""
            usd = f"{bound}{exact_digits(line.usd)}" if line.usd is not None else ""
            price = exact_digits(line.usd_each_million)
            return what, line.whose, line.model, line.kind, line.calls or None, f"{bound}{line.amount:,}", price, usd

        bill = [cells(line, "in the value" if line.counts else "not in the value") for line in explanation.bill]
        names = ("bill", "whose", "model", "kind", "calls", "tokens", "USD a million", "USD")
        lines = [*bill, cells(total_line(explanation.bill), "sum")]
        print(table(names, lines, optional=("whose", "calls", "USD a million")) + "\n")
    evidence = [(i.role, i.seq, i.line, i.artifact, i.excerpt) for i in explanation.evidence]
    print(table(("role", "seq", "line", "artifact", "excerpt"), evidence, EXCERPT_CHARS, optional=("artifact", "line")))
    for name, path in sorted(explanation.artifacts.items()):
        print(f"artifact   {name} = {printable(path)}")
    return 0


_KINDS: dict[str, Kind] = {"USD": "usd", "seconds": "seconds"}


def _value_text(value: Any, signal: str) -> str:
    """Return a value as people read it: a number with its unit, anything else as JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _rounded(value)
    if signal.startswith("sessions."):  # a total of tokens or money
        unit = "USD" if signal.endswith("_usd") else "tokens"
    else:
        from agentsignals.signals.catalog import by_path

        unit = by_path(signal).unit
    return formatted(value, _KINDS[unit]) if unit in _KINDS else f"{number(value)} {unit}".rstrip()


def _rounded(value: Any) -> str:
    """Return a value as JSON on one line, with numbers as people read them."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json_text(str(name))}: {_rounded(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_rounded, value))}]"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else msgspec.json.encode(value).decode()


def run_query(options: argparse.Namespace) -> int:
    from agentsignals.store.query import stream

    store = Store(options.store)
    if "findings" in options.sql.lower():
        from agentsignals.questions import findings

        findings.every_context(store)
    names, values = stream(store, options.sql, options.context)
    if options.csv and not options.json:
        write_csv(sys.stdout, names, values)
        return 0
    held = list(islice(values, MOST_ROWS + 1))
    if len(held) > MOST_ROWS:
        raise QueryError(f"The query returns more than {MOST_ROWS:,} rows.", "Add a LIMIT to the query, or use --csv.")
    if options.json:
        print(json_text([dict(zip(names, row, strict=True)) for row in held]))
        return 0
    shown = table(names, [[_as_computed(value) for value in row] for row in held], one_line=True)
    print(shown)
    if "…" in shown and not any(str(value).endswith("…") for row in held for value in row):
        print("(cells are cut: --csv or --json has all)")
    return 0


def _as_computed(value: Any) -> Any:
    """Return a value of a query for a table: six digits of a number and at least two decimals, a dash for no value."""
    if value is None:
        return MISSING
    if not (isinstance(value, float | Decimal) and isfinite(value)) or value == int(value):
        return value
    decimals = max(2, 5 - floor(log10(abs(float(value)))))
    return f"{value:,.{decimals}f}".rstrip("0").rstrip(".")


def run_report(options: argparse.Namespace) -> int:
    from agentsignals.ui import report

    choices = {name: getattr(options, name) for name in ("context", "labeller")}
    choices["baseline"] = Path(options.baseline) if options.baseline else None
    with Bar(options.quiet) as bar:
        store, output = store_with_sessions(options), Path(options.output)
        written = report.write(store, output, options.study, progress=bar, **choices)
    print(json_text({"report": str(written)}) if options.json else f"report      {written}")
    return 0
