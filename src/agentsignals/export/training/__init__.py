"""Training data out of eval attempts: accepted trajectories, preference pairs, steps. Nothing is uploaded.

Only what a verifier or a result says is a label; what is left out is counted with the reason, on the card too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from agentsignals.analysis.pass_caveat import CAVEAT
from agentsignals.errors import ExportError, UsageError
from agentsignals.export import Choice, Exported, WholeWriter, cannot_write, empty_folder
from agentsignals.export.card import sources_of
from agentsignals.export.training.chat import conversation
from agentsignals.export.training.duplicates import Seen
from agentsignals.export.training.made import KINDS, Example, Made
from agentsignals.export.training.preferences import Held, both_ways, pairs
from agentsignals.export.training.rows import Row, rows_of
from agentsignals.export.training.stepwise import stepwise
from agentsignals.export.training.training_card import LOSES, TEMPLATES, training_card
from agentsignals.redaction import redacted
from agentsignals.store import Store


def write(store: Store, ids: list[str], folder: Path, choice: Choice) -> Exported:
    """The folder: README.md and data/train.jsonl. ExportError where no session has anything to train on."""
    if choice.kind not in KINDS:
        raise UsageError(f"Training data come in kinds, and {choice.kind!r} is none.", f"--kind {' | '.join(KINDS)}")
    made = Made(kind=choice.kind, considered=len(ids))
    target = folder / "data" / "train.jsonl"
    try:
        empty_folder(folder)
        target.parent.mkdir()
        with target.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
            for example in _examples(store, rows_of(store, set(ids)), choice, made):
                line = json.dumps(example, ensure_ascii=False)
                out.write(f"{choice.redactor.text(line) if choice.redactor else line}\n")
        if not made.examples:
            target.unlink()
            target.parent.rmdir()
            raise ExportError(f"No session makes an example of the kind {made.kind!r}.", "; ".join(made.reasons))
        card = training_card(made, choice, sources_of(store, made.session_ids))
        (folder / "README.md").write_text(choice.redactor.plain(card) if choice.redactor else card, "utf-8", "replace")
    except OSError as problem:
        raise cannot_write(folder, problem) from problem
    return Exported(
        format="training",
        folder=str(folder),
        files=2,
        sessions=sum(made.agents.values()),
        loses=list(LOSES),
        tables={f"{made.kind} examples": made.examples},
        masked=choice.redactor.counts if choice.redactor else None,
        notes=_notes(made, choice),
    )


def _examples(store: Store, rows: list[Row], choice: Choice, made: Made) -> Iterator[Example]:
    """Example by example, each counted, those alike left out."""
    wanted = [row for row in rows if _is_wanted(row, choice, made)]
    if made.kind == "preferences":
        wanted = both_ways(wanted, made)
        held = list(_conversations(store, wanted, choice, made))
        candidates = pairs(held, made)
    else:
        candidates = _single(_conversations(store, wanted, choice, made), made)
    seen = Seen()
    for example, text, sides in candidates:
        # As it is given away: copies that differ in a name or a key that is masked are the same.
        why = seen.why_left_out(redacted(text) if choice.redactor else text)
        if why:
            made.left_out[why] += 1
        else:
            made.count([row for row, _ in sides], text, sum(talk.cut_results for _, talk in sides))
            yield example


def _is_wanted(row: Row, choice: Choice, made: Made) -> bool:
    why = ""
    if row.has_transcript is False:
        why = "the conversation was not collected"
    elif choice.without_benchmarks and row.benchmark is not None:
        why = f"of a known benchmark ({row.benchmark.benchmark}, by its {row.benchmark.by})"
    elif made.kind != "steps" and not row.rung:
        why = "nobody judged it: a person's session"
    elif made.kind != "steps" and row.rung not in made.rungs:
        why = f"its outcome: {row.rung.replace('_', ' ')}"
    elif made.kind != "steps" and row.pass_audit in ("retrieved", "verifier_touched"):
        why = f"its pass was not earned: {row.pass_audit.replace('_', ' ')}"
    if why:
        made.left_out[why] += 1
    return not why


def _conversations(store: Store, rows: list[Row], choice: Choice, made: Made) -> Iterator[Held]:
    by_id = {row.session_id: row for row in rows}
    for n, session in enumerate(store.read(set(by_id))):
        choice.tick("writing", n, len(by_id))
        held = conversation(session)
        if isinstance(held, str):
            made.left_out[held] += 1
        else:
            yield by_id[session.session_id], held


def _single(held: Iterator[Held], made: Made) -> Iterator[tuple[Example, str, list[Held]]]:
    for row, talk in held:
        if made.kind == "accepted":
            yield {"messages": [*talk.prompt, *talk.completion], **row.about}, talk.text, [(row, talk)]
            continue
        steps = stepwise(talk)
        if isinstance(steps, str):
            made.left_out[steps] += 1
        else:
            yield {**steps, **row.about}, talk.text, [(row, talk)]


def _notes(made: Made, choice: Choice) -> list[str]:
    """What the person should know."""
    notes = [f"left out: {reason}" for reason in made.reasons]
    notes += [f"of a known benchmark: {line}" for line in made.contamination]
    if made.benchmarks:
        notes.append("what is trained on can't be measured on: --without-benchmarks leaves them out")
    if made.cut_results:
        notes.append(
            f"{made.cut_results:,} long results of tools are there by their ends alone, as the store keeps them"
        )
    if made.across_models:
        notes.append(f"{made.across_models:,} pairs are of two models: `model` and `rejected_model` say which")
    if made.templates:
        notes.append(f"{made.templates:,} examples {TEMPLATES}")
    if made.kind != "steps":
        notes.append(f"no pass is trained on that is known not to be earned. {CAVEAT}")
    if choice.licence is None:
        notes.append("no licence was given: the card says so, and nobody may reuse it (--license)")
    if choice.redactor is None:
        notes.append("nothing was masked: look through it before it leaves this machine")
    return notes


WRITER = WholeWriter(
    name="training",
    describes="examples to train a model on (--kind accepted, preferences or steps), for datasets and TRL",
    put=write,
    redacts=True,
)
