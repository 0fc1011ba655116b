"""Rows of verdicts: everything that is scored about an attempt and an episode, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.evaluation.hardcoding import hardcoding
from agentsignals_lab.evaluation.markers import legacy_score, prose_markers
from agentsignals_lab.evaluation.verdict import Verdict
from agentsignals_lab.residual.interface import Generation
from agentsignals_lab.retry.rows import AttemptRow, EpisodeRow

_OF_VERDICT = [name for name in AttemptRow.__struct_fields__ if name in Verdict.__struct_fields__]


def attempt_row(  # noqa: PLR0913  (what a row is made of, named at the call)
    task: Task,
    verdict: Verdict,
    answer: Generation,
    *,
    condition: str,
    sample: int,
    attempt: int,
    seed: int,
    feedback: str,
    asked: str,
) -> AttemptRow:
    """Scores one answer. `asked`: all that the model was told, whose words are not counted as its own."""
    hard = hardcoding(task, verdict.source, verdict)
    prose = prose_markers(answer.text, verdict.source, asked)
    judged = {name: getattr(verdict, name) for name in _OF_VERDICT}
    return AttemptRow(
        **judged,
        condition=condition,
        sample=sample,
        attempt=attempt,
        seed=seed,
        prompt_tokens=answer.prompt_tokens,
        tokens=len(answer.tokens) or answer.new_tokens,
        finish=answer.finish,
        logprob_sum=answer.logprob_sum,
        answer=answer.text,
        feedback=feedback,
        hardcoded=hard.flagged,
        marker_score=legacy_score(answer.text),
        frustration_per_100_words=prose.rate("frustration"),
        desperation_per_100_words=prose.rate("desperation"),
        give_up_per_100_words=prose.rate("give_up"),
        prose_words=prose.words,
    )


def episode_row(
    condition: str, task: Task, sample: int, attempts: Sequence[AttemptRow], verdicts: Sequence[Verdict]
) -> EpisodeRow:
    """Return the outcome of all attempts of an episode; its result is that of the last one made."""
    last, failed_first, pairs = attempts[-1], verdicts[0].visible_pass is False, list(pairwise(verdicts))
    passed_at = next((n for n, verdict in enumerate(verdicts) if verdict.visible_pass), None)
    return EpisodeRow(
        condition=condition,
        task=task.key,
        sample=sample,
        attempts=len(attempts),
        visible_pass=last.visible_pass,
        hidden_pass=last.hidden_pass,
        full_pass=last.full_pass,
        failed_first=failed_first,
        recovered=failed_first and passed_at is not None,
        passed_at=passed_at,
        regressed=sum(b.visible_passed < a.visible_passed for a, b in pairs),
        repeated=sum(bool(a.source) and a.source == b.source for a, b in pairs),
        hardcoded=last.hardcoded,
        evaluator=last.evaluator,
        tier=last.tier,
    )
