"""What kinds of calls agents make, in the twenty kinds of SWE-chat (SWE-chat, Table 5 and Figure 19b)."""

from __future__ import annotations

from agentsignals.analysis.charts import bars
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Chart, Column, Inputs, Outcome, Row, Study, Table, again_in_report
from agentsignals.analysis.tool_kinds import KIND, PUBLISHED

_HEADLINES = (
    ("looking", "Calls that read, search or list", ("read", "grep", "glob"), "SWE-chat: 31.3% (Table 5)"),
    ("changing", "Calls that edit or write a file", ("edit", "write"), "SWE-chat: 22.5% (Table 5)"),
    (
        "commands",
        "Calls that are shell commands",
        ("bash", "bash:build", "bash:file", "bash:net", "git/gh"),
        "SWE-chat: 33.3% (Table 5); searches through the shell are not among them",
    ),
)


def _outcome(inputs: Inputs) -> Outcome:
    places = by_session(inputs.rows["sessions"])
    mixes: dict[str, dict[str, int]] = {}
    for row in inputs.rows["calls"]:
        mixes.setdefault(row["session_id"], {})[row["kind"]] = row["n"]

    def estimate(*kinds: str) -> Estimate:
        parts = [(s, float(sum(mix.get(k, 0) for k in kinds)), sum(mix.values())) for s, mix in mixes.items()]
        return Estimate(parts, places)

    findings = [
        estimate(*kinds).finding(
            note,
            id=f"tool_categories.{name}",
            title=title,
            unit="share of calls",
            of="tool calls",
            command=again_in_report("tool_categories"),
        )
        for name, title, kinds, note in _HEADLINES
    ]
    shares = {kind: estimate(kind) for kind in PUBLISHED}
    ranked = sorted(((k, e) for k, e in shares.items() if e.k), key=lambda pair: (-pair[1].k, pair[0]))
    sessions = {kind: sum(kind in mix for mix in mixes.values()) for kind, _ in ranked}
    chart = _chart(ranked)
    limits = [
        "Shell commands are told apart by their first word alone: cd somewhere && git push is a file command here, as"
        " in the paper. The paper prints the commonest words of each kind only.",
    ]
    table = _table(ranked, sessions)
    return Outcome([f for f in findings if f.n], [table], [chart] if chart else [], limits)


def _table(ranked: list[tuple[str, Estimate]], sessions: dict[str, int]) -> Table:
    published = sum(PUBLISHED.values())
    return Table(
        id="tool_categories.calls",
        title="Calls by kind",
        columns=(
            Column("kind", "kind"),
            Column("calls", "calls", "count"),
            Column("share", "share", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("sessions", "sessions with one", "count"),
            Column("published", "in SWE-chat", "share"),
        ),
        rows=[
            [
                *(kind, int(estimate.k), estimate.value, *(estimate.interval or (None, None))),
                *(sessions[kind], PUBLISHED[kind] / published),
            ]
            for kind, estimate in ranked
        ],
        n=int(ranked[0][1].n) if ranked else 0,
        of="tool calls",
        note=f"Main thread. In SWE-chat: shares of {published:,} calls (v1, Table 5).",
    )


def _chart(ranked: list[tuple[str, Estimate]]) -> Chart | None:
    rows: list[Row] = [
        {
            "name": kind,
            "value": estimate.value,
            "tip": f"{kind}: {estimate.k:,.0f} of {estimate.n:,.0f} calls, {formatted(estimate.value, 'share')}",
        }
        for kind, estimate in ranked
    ]
    if not rows:
        return None
    return Chart(
        id="tool_categories.shares",
        title="Calls by kind",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "share of calls", "share"),
        n=int(ranked[0][1].n),
        of="tool calls",
    )


STUDY = Study(
    name="tool_categories",
    place=50,
    title="Kinds of tool calls",
    question="What are the calls, in the kinds of SWE-chat?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "calls": f"SELECT session_id, kind, count(*) AS n FROM (SELECT session_id, {KIND} AS kind FROM tool_calls"
        " WHERE thread = 'main') GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
)
