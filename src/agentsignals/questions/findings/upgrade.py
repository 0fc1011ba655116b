"""Names the measures that got worse or better when an agent's version, or its model, changed."""

from __future__ import annotations

import re

from agentsignals.questions import upgrades
from agentsignals.questions.question import Inputs, Question, formatted, times
from agentsignals.questions.ranking import Answer, finding_id, safe_name, sessions_sql, with_source_lines
from agentsignals.questions.upgrades import METRICS, Change

_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_OF_SESSIONS = (
    "SELECT session_id, min(seq) AS seq, any_value(sessions.started_at) AS started_at,"
    " any_value(sessions.agent_version) AS agent_version, any_value(sessions.model) AS model"
    " FROM events JOIN sessions USING (session_id) WHERE {among} GROUP BY session_id"
)


def upgrade(inputs: Inputs) -> list[Answer]:
    """Return an answer for each comparison. They share an error rate of their own, so they have q but no p."""
    return [answer_of(change) for change in upgrades.changes(inputs) if change.q is not None]


def answer_of(change: Change) -> Answer:
    """Return a comparison in words; its share is 0 unless it is to be said."""
    metric = next(metric for metric in METRICS if metric.name == change.metric)
    name, day = safe_name(change.name), f"{change.day:%Y-%m-%d}"
    before, after = (formatted(value, metric.kind) for value in (change.before, change.after))
    is_version = change.axis == "version"
    when = f"Since {safe_name(change.agent)} {name} ({day})" if is_version else f"With {name} (since {day})"
    low, high = change.interval or (0.0, 0.0)
    if metric.is_share:
        gap = f"The change is {100 * low:+.1f} to {100 * high:+.1f} points"
    else:
        gap = f"That is {low:.2f} to {high:.2f} times as much"
    sides = ("of earlier versions", "of this or later ones") if is_version else ("before", "with it")
    alike = ", and with the same model" if is_version else ""
    details = [
        f"{gap} (95%), over {change.n_before:,} sessions {sides[0]} and {change.n_after:,} {sides[1]}, in the same"
        f" projects, with or without edits alike{alike}."
    ]
    if change.left_out:
        details.append(f"{times(change.left_out, 'session')} of that time had no counterpart.")
    if change.taken_with:
        details.append(f"Versions up to {safe_name(change.taken_with[-1])} are counted with it.")
    if change.also_changed:
        details.append(f"At the same time {change.also_changed} changed.")
    is_worse = change.excess > 0
    nearest = (change.sessions_before[-1], change.sessions_after[0])
    commands = ", ".join(f"`agentsignals show {session_id}`" for session_id in nearest if _PLAIN.fullmatch(session_id))
    among = sessions_sql(change.sessions_before + change.sessions_after)
    return Answer(
        id=finding_id(f"upgrade.{change.axis}.{metric.name}", f"{change.agent} {change.name}"),
        about=f"upgrade.{change.agent}.{metric.name}",
        sentence=f"{when}, {metric.of.format(after)}, compared with {before} before.",
        details=" ".join(details),
        size=abs(change.excess),
        unit=metric.unit,
        share=change.share if change.is_said else 0.0,
        interval=(low, high) if metric.is_share else None,
        q=change.q,
        n=change.n_before + change.n_after,
        cause=with_source_lines(_OF_SESSIONS.format(among=among)),
        do=f"Compare a session of each side{f' ({commands})' if commands else ''}. If the work is alike, try"
        f" {safe_name(change.former)} again."
        if is_worse
        else "",
        saves=None if is_worse else 0.0,
        caveat=f"The change began that day. The new {change.axis} may not be its cause. Sessions of one project and day"
        " count as alike.",
        by_session=dict.fromkeys(change.sessions_after, 1.0),
    )


UPGRADE_FINDING = Question(
    name="upgrade",
    question="What changed when an agent's version or model changed?",
    queries=upgrades.QUERIES,
    function=upgrade,
    sliced=upgrades.SLICED,
    why_none=lambda inputs: upgrades.why_none(upgrades.changes(inputs)),
)
