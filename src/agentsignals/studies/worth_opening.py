"""Sessions worth opening: those that loop, fail or cost most."""

from __future__ import annotations

from math import fsum
from typing import Any

from agentsignals.analysis import rows as sql
from agentsignals.analysis.measures import of_signal
from agentsignals.analysis.study import Column, Finding, Inputs, Outcome, Row, Study, Table, again

_REPETITION = "dynamics.repetition_rate"
_ERRORS = "user.tool_error_rate"
_COST = "corpus.session_cost_usd"
_MOST = 5
_TITLE_CHARS = 90
_ABOUT = (
    Column("about", "title or first prompt"),
    Column("agent", "agent"),
    Column("started", "started", "date"),
    Column("turns", "prompts", "count"),
    Column("tool_calls", "tool calls", "count"),
)


def _outcome(inputs: Inputs) -> Outcome:
    by_id = {row["session_id"]: row for row in inputs.rows["sessions"]}
    prompts = {row["session_id"]: row["text"] for row in inputs.rows["prompts"]}

    def table(name: str, title: str, columns: tuple[Column, ...], rows: list[Row], figures: list[list[Any]]) -> Table:
        table_rows = [
            [row["session_id"], *figures_of_row, *_session_cells(by_id[row["session_id"]], prompts)]
            for row, figures_of_row in zip(rows, figures, strict=True)
        ]
        return Table(
            id=f"worth.{name}",
            title=title,
            columns=(Column("session", "session", "session"), *columns, *_ABOUT),
            rows=table_rows,
            n=len(by_id),
            of="sessions",
            note="agentsignals show SESSION prints one.",
        )

    loops, failing, costly = _loops(inputs), _failing(inputs), _costly(inputs)
    tables = [
        table(
            "loops",
            "Most repetition",
            (Column("run", "equal calls in a row", "count"), Column("rate", "repeats", "share")),
            loops,
            [[int(row["stale_max"]), row["number"]] for row in loops],
        ),
        table(
            "failing",
            "Most failed calls",
            (Column("failed", "failed", "count"), Column("rate", "of the answered", "share")),
            failing,
            [[int(row["num"]), row["number"]] for row in failing],
        ),
        table("costly", "Costliest", (Column("cost", "cost", "usd"),), costly, [[row["number"]] for row in costly]),
    ]
    return Outcome(_findings(inputs, costly), tables, [], [])


def _loops(inputs: Inputs) -> list[Row]:
    sessions = [row for row in of_signal(inputs, _REPETITION) if row["number"]]
    sessions.sort(key=lambda row: (-(row["stale_max"] or 0), -row["number"], row["session_id"]))
    return sessions[:_MOST]


def _failing(inputs: Inputs) -> list[Row]:
    sessions = [row for row in of_signal(inputs, _ERRORS) if row["num"]]
    sessions.sort(key=lambda row: (-row["num"], -row["number"], row["session_id"]))
    return sessions[:_MOST]


def _costly(inputs: Inputs) -> list[Row]:
    sessions = [row for row in of_signal(inputs, _COST) if row["number"]]
    sessions.sort(key=lambda row: (-row["number"], row["session_id"]))
    return sessions[:_MOST]


def _session_cells(session: Row, prompts: dict[str, str]) -> list[Any]:
    about = " ".join((session["title"] or prompts.get(session["session_id"]) or "").split())
    short = about if len(about) <= _TITLE_CHARS else f"{about[: _TITLE_CHARS - 1]}…"
    figures = [session[key] for key in ("agent", "started_at", "n_turns", "n_tool_calls")]
    return [short or None, *figures]


def _findings(inputs: Inputs, costly: list[Row]) -> list[Finding]:
    costs = [row["number"] for row in of_signal(inputs, _COST) if row["number"] is not None]
    errors = [row["num"] for row in of_signal(inputs, _ERRORS) if row["num"] is not None]
    total, failed = fsum(costs), sum(errors)
    top = fsum(row["number"] for row in costly)
    five = sum(sorted(errors, reverse=True)[:_MOST])
    return [
        Finding(
            id="worth.cost_share",
            title=f"Cost that the {_MOST} costliest sessions make up",
            value=top / total if total else None,
            unit="share of cost",
            kind="share",
            n=len(costs),
            of="priced sessions",
            signals=(_COST,),
            priced=True,
            command=again(
                f"SELECT (SELECT sum(number) FROM (SELECT number FROM signals WHERE signal = '{_COST}'"
                f" ORDER BY number DESC NULLS LAST LIMIT {_MOST})) / sum(number) FROM signals WHERE signal = '{_COST}'"
            ),
        ),
        Finding(
            id="worth.error_share",
            title=f"Failed calls that lie in the {_MOST} sessions with most",
            value=five / failed if failed else None,
            unit="share of failed calls",
            kind="share",
            n=int(failed),
            of="failed calls",
            signals=(_ERRORS,),
            command=again(
                "SELECT (SELECT sum(k) FROM (SELECT CAST(detail->>'num' AS DOUBLE) AS k FROM signals"
                f" WHERE signal = '{_ERRORS}' ORDER BY k DESC NULLS LAST LIMIT {_MOST}))"
                f" / sum(CAST(detail->>'num' AS DOUBLE)) FROM signals WHERE signal = '{_ERRORS}'"
            ),
        ),
    ]


STUDY = Study(
    name="worth_opening",
    place=20,
    title="Sessions worth opening",
    question="Where is it worth looking first?",
    queries={
        "sessions": sql.SESSIONS,
        "values": sql.values(_REPETITION, _ERRORS, _COST, detail=("stale_max",)),
        "prompts": "SELECT session_id, left(text, 400) AS text FROM turns WHERE turn = 0 ORDER BY session_id",
    },
    function=_outcome,
)
