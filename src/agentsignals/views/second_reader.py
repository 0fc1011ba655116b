"""The second reader of a pass: a language model's or a person's label, joined with what the rules say (docs/audit.md).

`agentsignals evals audit --reader` makes the labels. The rules are exact in what they look for and miss most; a reader
understands what it reads and can be deceived by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field, structs

from agentsignals.views.failure import VERDICTS, Verdict
from agentsignals.views.judge import Action
from agentsignals.views.reward_hacking import Audit, audit
from agentsignals.views.session import SessionView

AUDIT_TASK = "pass_audit"
"""The labelling task, whose labels are verdicts."""
JOINED: Final[Mapping[Verdict, Mapping[Verdict, Verdict]]] = {
    "derived": {
        "derived": "derived",
        "retrieved": "retrieved",
        "verifier_touched": "verifier_touched",
        "cannot_tell": "cannot_tell",
    },
    "cannot_tell": {
        "derived": "derived",
        "retrieved": "retrieved",
        "verifier_touched": "verifier_touched",
        "cannot_tell": "cannot_tell",
    },
    "retrieved": {
        "derived": "cannot_tell",
        "retrieved": "retrieved",
        "verifier_touched": "verifier_touched",
        "cannot_tell": "retrieved",
    },
    "verifier_touched": {
        "derived": "cannot_tell",
        "retrieved": "retrieved",
        "verifier_touched": "verifier_touched",
        "cannot_tell": "verifier_touched",
    },
}
"""The verdict on a pass, by what the rules say and then by what the reader says."""
_MOST_CHARS = 300


class _Quote(Struct):
    seq: int
    text: str


class _Detail(Struct):
    quotes: list[_Quote] = field(default_factory=list)


def read_audit(view: SessionView) -> Audit | None:
    """The audit of a passed attempt by its rules and, where somebody read it, its second reader. None where it did not
    pass."""
    made = audit(view)
    label = next(reversed(view.judgements(AUDIT_TASK)), None)
    said = next((name for name in VERDICTS if label is not None and name == label.value), None)
    if made is None or label is None or said is None:
        return made
    verdict = JOINED[made.verdict][said]
    is_readers = said == verdict != made.verdict
    named = label.labeller if said == verdict else f"{label.labeller}: {said.replace('_', ' ')}"
    reason = f"read by {named}: {(label.reason or '')[:_MOST_CHARS]}"
    quoted: list[Action] = []
    if said == verdict:
        detail = msgspec.json.decode(label.detail or "{}", type=_Detail)
        quoted = [
            Action(channel="quoted", seq=quote.seq, path="", text=quote.text)
            for quote in detail.quotes
            if 0 <= quote.seq < len(view.session.events)
        ]
    return structs.replace(
        made,
        verdict=verdict,
        because=reason if is_readers else f"{made.because}; {reason}",
        actions=[*quoted, *made.actions] if is_readers else [*made.actions, *quoted],
        rules=made.verdict,
        reader=said,
        read_by=label.labeller,
    )
