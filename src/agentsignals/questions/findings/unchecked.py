"""Whether it is checked before it is called done: by the last test or build against the last change of code."""

from __future__ import annotations

from agentsignals.questions.estimates import top_sessions
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import (
    SESSIONS,
    Answer,
    Contrast,
    contrasts,
    finding_id,
    sessions_sql,
    with_source_lines,
)

_NO_CODE = r"\.(md|mdx|txt|rst|adoc|json|ya?ml|toml|lock|csv|svg|png)$"
_CHECKS = "class = 'test' OR shell_kind IN ('test', 'build')"
_LAST_EDIT = (
    "SELECT session_id, max(seq) AS seq FROM edits WHERE thread = 'main'"
    f" AND NOT regexp_matches(lower(path), '{_NO_CODE}') GROUP BY session_id"
)


def _answers(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["changed"]
    unchecked = {row["session_id"] for row in rows if row["checked"] is None or row["checked"] < row["edited"]}
    never = {row["session_id"] for row in rows if row["checked"] is None}
    parts = [(row["session_id"], float(row["session_id"] in unchecked), 1.0) for row in rows]
    groups = contrasts(parts, inputs.rows["sessions"])
    return [_answer(contrast, unchecked, never, len(rows)) for contrast in groups]


def _answer(contrast: Contrast, unchecked: set[str], never: set[str], whole: int) -> Answer:
    of = contrast.in_group & unchecked
    rest = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"unchecked.{contrast.key}", contrast.value),
        about="unchecked",
        sentence=f"{formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f} sessions {contrast.where} that"
        f" changed code ended with the last change untested ({len(of & never):,} never ran a test or build), against"
        f" {rest} in {contrast.matched}.",
        **contrast.more(whole, "sessions", whole),
        cause=with_source_lines(f"SELECT * FROM ({_LAST_EDIT}) WHERE {sessions_sql(of) if of else 'false'}"),
        do=f"Say in the instructions which command checks the work {contrast.where}.",
        caveat="Goes with it, and need not be because of it. A check by a program that is not known as a test or"
        f" build, or by the person, is not seen; {contrast.group.note}.",
        sessions=top_sessions((session_id, 1.0) for session_id in of),
    )


FINDING = Question(
    name="unchecked",
    question="Is it checked before it is called done?",
    queries={
        "sessions": SESSIONS,
        "changed": f"SELECT e.session_id, e.seq AS edited, c.seq AS checked FROM ({_LAST_EDIT}) AS e LEFT JOIN (SELECT"
        f" session_id, max(seq) AS seq FROM tool_calls WHERE {_CHECKS} GROUP BY session_id) AS c USING (session_id)"
        " ORDER BY session_id",
    },
    function=_answers,
)
