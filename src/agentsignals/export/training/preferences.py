"""Pairs of attempts at one task, one solved and one failed, of one agent, that began with the same prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agentsignals.embedding.lexical import split_words
from agentsignals.export.training.chat import Conversation
from agentsignals.export.training.duplicates import NEAR, resemblance, sketch
from agentsignals.export.training.made import Example, Made
from agentsignals.export.training.rows import Row

Held = tuple[Row, Conversation]


def both_ways(rows: Sequence[Row], made: Made) -> list[Row]:
    """The attempts at tasks that some solved and some failed; one without a task is left out, too."""
    rungs: dict[tuple[str | None, str], set[str]] = {}
    for row in rows:
        if row.task is not None:
            rungs.setdefault((row.dataset, row.task), set()).add(row.rung)
    kept = []
    for row in rows:
        if row.task is None:
            made.left_out["its task is not recorded"] += 1
        elif len(rungs[row.dataset, row.task]) < 2:
            made.left_out[f"its task was only {row.rung}"] += 1
        else:
            kept.append(row)
    return kept


def pairs(held: Sequence[Held], made: Made) -> Iterator[tuple[Example, str, list[Held]]]:
    """Each attempt in one pair at most, so that no task weighs more than its attempts. Those of one model are paired
    first; those of two agents never, which differ in tools and instructions, whatever came of the task."""
    groups: dict[tuple[str | None, ...], list[Held]] = {}
    for row, talk in sorted(held, key=lambda pair: pair[0].session_id):
        key = row.dataset, row.task, row.agent, json.dumps(talk.prompt, sort_keys=True)
        groups.setdefault(key, []).append((row, talk))
    for group in groups.values():
        matched = _matched(group)
        over = len(group) - 2 * len(matched)
        if over:
            made.left_out["no attempt of its agent with the other outcome is left that began with the same prompt"] += (
                over
            )
        for (better, chosen), (worse, rejected) in matched:
            sketches = [sketch(split_words(side.completion_text)) for side in (chosen, rejected)]
            if resemblance(*sketches) >= NEAR:
                made.left_out["pairs whose two sides are nearly the same"] += 1
                continue
            sides = {"chosen": chosen.completion, "rejected": rejected.completion}
            ids = {"session_id": better.session_id, "rejected_session_id": worse.session_id}
            models = {"model": better.model, "rejected_model": worse.model}
            example = {"prompt": chosen.prompt, **sides, **better.about, **ids, **models}
            yield example, f"{chosen.text}\n{rejected.completion_text}", [(better, chosen), (worse, rejected)]


def _matched(group: Sequence[Held]) -> list[tuple[Held, Held]]:
    """Solved with failed: those of the same model, then the rest."""
    matched = []
    left = list(group)
    for same_model in (True, False):
        for better in [pair for pair in left if pair[0].rung == "solved"]:
            others = (pair for pair in left if pair[0].rung == "failed")
            worse = next((w for w in others if not same_model or w[0].model == better[0].model), None)
            if worse is not None:
                matched.append((better, worse))
                left = [pair for pair in left if pair is not better and pair is not worse]
    return matched
