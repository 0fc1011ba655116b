"""What kinds of calls agents make, in the twenty kinds of SWE-chat (SWE-chat, Table 5 and Figure 19b)."""

from __future__ import annotations

from typing import Any

from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import ClusteredShare, Sample, bar, chart, table
from agentsignals.questions.question import Inputs, Outcome, Study
from agentsignals.questions.tool_kinds import KIND, PUBLISHED

_HEADLINES = (
    ("looking", "Calls that read, search or list", ("read", "grep", "glob"), "SWE-chat: 31.3% (Table 5)"),
    ("changing", "Calls that edit or write a file", ("edit", "write"), "SWE-chat: 22.5% (Table 5)"),
    (
        "commands",
        "Calls that are shell commands, in the kinds of SWE-chat",
        ("bash", "bash:build", "bash:file", "bash:net", "git/gh"),
        "SWE-chat: 33.3% (Table 5); searches through the shell are not among them",
    ),
)


def _outcome(inputs: Inputs) -> Outcome:
    mixes: dict[str, dict[str, int]] = {}
    for row in inputs.rows["calls"]:
        mixes.setdefault(row["session_id"], {})[row["kind"]] = row["n"]

    sample = Sample(list(mixes), inputs.places, [sum(mix.values()) for mix in mixes.values()])

    def estimate(*kinds: str) -> ClusteredShare:
        held = [[mix.get(kind, 0) for mix in mixes.values()] for kind in kinds]
        return sample.share(list(map(float, map(sum, zip(*held, strict=True)) if held[1:] else held[0])))

    of = "tool calls"
    findings = [
        estimate(*kinds).finding(f"tool_categories.{name}", title, of, note, unit="share of calls")
        for name, title, kinds, note in _HEADLINES
    ]
    used = {kind for mix in mixes.values() for kind in mix}
    shares = [(kind, estimate(kind)) for kind in PUBLISHED if kind in used]
    ranked = sorted(shares, key=lambda pair: (-pair[1].k, pair[0]))
    n, published = (ranked[0][1].n if ranked else 0), sum(PUBLISHED.values())
    rows: list[list[Any]] = []
    for kind, e in ranked:
        sessions = sum(kind in mix for mix in mixes.values())
        rows.append([kind, int(e.k), e.value, *e.ends, sessions, PUBLISHED[kind] / published])
    by_kind = table(
        "tool_categories.calls",
        "Calls by kind",
        "kind | calls:count | share:share | ends:share | sessions sessions with one:count"
        " | published in SWE-chat:share",
        rows,
        n=n,
        of=of,
        evidence=[[(s, k, k) for s, mix in mixes.items() if (k := mix.get(kind))] for kind, _ in ranked],
        note=f"Main thread. In SWE-chat: shares of {published:,} calls (v1, Table 5).",
    )
    marks = [bar(kind, e.k / e.n, f"{kind}: {e.words('calls')}", evidence=e.counted) for kind, e in ranked]
    shown = bars(marks, "share of calls", "share")
    limits = [
        "Shell commands are told apart by their first word alone: cd somewhere && git push is a file command here, as"
        " in the paper. The paper prints the commonest words of each kind only."
    ]
    by_share = chart("tool_categories.shares", "Calls by kind", marks, shown, n=n, of=of)
    return Outcome([f for f in findings if f.n], [by_kind], [by_share], limits)


STUDY = Study(
    name="tool_categories",
    order=50,
    title="Kinds of tool calls",
    question="What are the calls, in the kinds of SWE-chat?",
    queries={
        "calls": f"SELECT session_id, kind, count(*) AS n FROM (SELECT session_id, {KIND} AS kind FROM tool_calls"
        " WHERE thread = 'main') GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
)
