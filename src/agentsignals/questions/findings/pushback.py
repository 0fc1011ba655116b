"""Where the person pushes back: only by what is right more often than not."""

from __future__ import annotations

from agentsignals.questions.estimates import by, top_sessions
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
from agentsignals.questions.sql import LABEL, NAMED
from agentsignals.stats.intervals import FEWEST_CLUSTERS
from agentsignals.stats.validation import HALF, Figure, figures_of, share_text

_SIGNAL = "chat.pushback_type"


def _classes() -> dict[str, Figure]:
    """The classes of pushback that may be spoken of, with their figures against most things judged."""
    best = {}
    for figure in sorted(figures_of(_SIGNAL), key=lambda figure: figure.named):
        if figure.precision is not None and figure.value != "non_pushback":
            best[figure.value] = figure
    return {value: figure for value, figure in best.items() if (figure.precision or 0) >= HALF}


def _answers(inputs: Inputs) -> list[Answer]:
    classes = _classes()
    validity = min((figure.precision or 0.0 for figure in classes.values()), default=0.0)
    recalls = "; ".join(
        f"{value.replace('_', ' ')} {share_text(figure.recall, figure.recall_interval)}"
        for value, figure in sorted(classes.items())
    )
    pushed: dict[str, float] = {}
    parts = []
    for session_id, rows in by(inputs.rows["turns"], "session_id").items():
        k = float(sum(row["n"] for row in rows if row["label"] in classes))
        if k:
            pushed[session_id] = k
        parts.append((session_id, k, float(sum(row["n"] for row in rows))))
    if len(pushed) < FEWEST_CLUSTERS:
        return []
    groups = contrasts(parts, inputs.rows["sessions"])
    # Turns that push back are few by nature: how many of them are more than elsewhere is what ranks.
    whole, turns = sum(pushed.values()), sum(n for _, _, n in parts)
    return [_answer(contrast, pushed, (validity, recalls), turns, whole) for contrast in groups]


def _answer(
    contrast: Contrast, pushed: dict[str, float], measured: tuple[float, str], turns: float, whole: float
) -> Answer:
    """`measured`: how often the patterns are right at least, and how much of each class they find."""
    validity, recalls = measured
    of = contrast.in_group & pushed.keys()
    rest = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"pushback.{contrast.key}", contrast.value),
        about="pushback",
        sentence=f"You push back at least in {formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f}"
        f" later prompts {contrast.where}, against {rest} in {contrast.matched}.",
        **contrast.more(turns, "prompts", whole),
        cause=with_source_lines(
            f"SELECT session_id, turns.seq, turns.turn, {LABEL} AS label FROM signals JOIN turns USING (session_id,"
            " turn)"
            f" WHERE signal = '{_SIGNAL}' AND {LABEL} IN ('correction', 'failure_report', 'rejection')"
            f" AND {sessions_sql(of) if of else 'false'}"
        ),
        do=f"Read what you objected to {contrast.where}, and put it into the instructions there.",
        caveat="Goes with it, and need not be because of it. Judged by word patterns in English, which are right in"
        f" {formatted(validity, 'share')} of what they find, and find of all there is: {recalls};"
        f" {contrast.group.note}.",
        validity=validity,
        at_least=True,
        sessions=top_sessions((session_id, pushed[session_id]) for session_id in of),
    )


FINDING = Question(
    name="pushback",
    question="Where do I push back?",
    queries={
        "sessions": SESSIONS,
        "turns": f"SELECT session_id, {LABEL} AS label, count(*) AS n FROM {NAMED} JOIN sessions USING (session_id)"
        f" WHERE signal = '{_SIGNAL}' AND absent IS NULL AND turn > 0 GROUP BY ALL ORDER BY ALL",
    },
    function=_answers,
)
