"""Sessions worth opening: those that loop, fail or cost most."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.estimates import count, ranked, signal_rows, table
from agentsignals.questions.formatting import with_bound, without_bound
from agentsignals.questions.question import Finding, Inputs, Outcome, Part, Row, Study, Table
from agentsignals.redaction import redacted_part

_REPETITION = "dynamics.repetition_rate"
_ERRORS = "user.tool_error_rate"
_COST = "corpus.session_cost_usd"
_MOST, _LEAST = 5, 1e-9
_TITLE_CHARS = 90
_ABOUT = "about title or first prompt | agent | started:date | prompts:count | tool_calls tool calls:count"


def _outcome(inputs: Inputs) -> Outcome:
    by_id = {row["session_id"]: row for row in inputs.rows["sessions"]}
    prompts = {row["session_id"]: row["text"] for row in inputs.rows["prompts"]}

    def most(
        name: str,
        title: str,
        header: str,
        rows: list[Row],
        figures: Callable[[Row], list[Any]],
    ) -> Table:
        rows.sort(key=lambda row: ([-(without_bound(figure) or 0) for figure in figures(row)], row["session_id"]))
        return table(
            f"worth.{name}",
            title,
            f"session:session | {header} | {_ABOUT}",
            [
                [row["session_id"], *figures(row), *_session_cells(by_id[row["session_id"]], prompts)]
                for row in rows[:_MOST]
            ],
            n=len(by_id),
            of="sessions",
            evidence=[[row["session_id"]] for row in rows[:_MOST]],
            note="agentsignals show SESSION prints one.",
        )

    def cost_of(row: Row) -> list[Any]:
        return [with_bound(row["number"], by_id[row["session_id"]][sql.BOUND] is not None)]

    loops, failing, costly = (
        [row for row in signal_rows(inputs, path) if row[key]]
        for path, key in ((_REPETITION, "number"), (_ERRORS, "num"), (_COST, "number"))
    )
    runs, failed = (
        "run equal calls with no edit between:count | rate repeats:share",
        "failed:count | rate of the answered:share",
    )
    tables = [
        most("loops", "Most repetition", runs, loops, lambda row: [int(row["stale_max"]), row["number"]]),
        most("failing", "Most failed calls", failed, failing, lambda row: [int(row["num"]), row["number"]]),
        most("costly", "Costliest", "cost:usd", costly, cost_of),
    ]
    return Outcome(_findings(inputs), tables, [], [])


def _session_cells(session: Row, prompts: dict[str, str]) -> list[Any]:
    about = " ".join(redacted_part(session["title"] or prompts.get(session["session_id"]) or "").split())
    short = about if len(about) <= _TITLE_CHARS else f"{about[: _TITLE_CHARS - 1]}…"
    figures = [session[key] for key in ("agent", "started_at", "n_prompts", "n_tool_calls")]
    return [short or None, *figures]


def _first(of_session: dict[str, float]) -> list[Part]:
    """The sessions with most, of all; one that has nothing of it is counted as well."""
    most = {session_id for session_id, _ in ranked(of_session)[:_MOST]}
    return [(session_id, n if session_id in most else 0, max(n, _LEAST)) for session_id, n in of_session.items()]


def _findings(inputs: Inputs) -> list[Finding]:
    priced = {row["session_id"]: row["number"] for row in signal_rows(inputs, _COST) if row["number"] is not None}
    failing = {row["session_id"]: row["num"] for row in signal_rows(inputs, _ERRORS) if row["num"] is not None}
    costs, errors = (sorted(of_session.values(), reverse=True) for of_session in (priced, failing))
    total, failed = fsum(costs), sum(errors)
    low = sum(row[sql.BOUND] is not None for row in inputs.rows["sessions"])
    return [
        count(fsum(costs[:_MOST]) / total if total else None, len(costs), "share", evidence=_first(priced)).finding(
            "worth.cost_share",
            f"Cost that the {_MOST} costliest sessions make up",
            "priced sessions",
            f"{low:,} of the costs are lower bounds" if low else "",
            unit="share of cost",
            sql=f"SELECT (SELECT sum(number) FROM (SELECT number FROM signals WHERE signal = '{_COST}'"
            f" ORDER BY number DESC NULLS LAST LIMIT {_MOST})) / sum(number) FROM signals WHERE signal = '{_COST}'",
            signals=(_COST,),
            priced=True,
        ),
        count(sum(errors[:_MOST]) / failed if failed else None, int(failed), "share", evidence=_first(failing)).finding(
            "worth.error_share",
            f"Failed calls that lie in the {_MOST} sessions with most",
            "failed calls",
            sql="SELECT (SELECT sum(k) FROM (SELECT CAST(detail->>'num' AS DOUBLE) AS k FROM signals"
            f" WHERE signal = '{_ERRORS}' ORDER BY k DESC NULLS LAST LIMIT {_MOST}))"
            f" / sum(CAST(detail->>'num' AS DOUBLE)) FROM signals WHERE signal = '{_ERRORS}'",
            signals=(_ERRORS,),
        ),
    ]


STUDY = Study(
    name="worth_opening",
    order=20,
    title="Sessions worth opening",
    question="Where is it worth looking first?",
    queries={
        "sessions": sql.SESSIONS,
        "values": sql.values(_REPETITION, _ERRORS, _COST, detail=(*sql.RATIO, "stale_max")),
        "prompts": "SELECT session_id, left(text, 400) AS text FROM turns WHERE turn = 0 ORDER BY session_id",
    },
    function=_outcome,
)
