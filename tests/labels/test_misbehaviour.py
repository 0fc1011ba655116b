"""A server of this machine that fences, thinks aloud, talks, refuses, fails and hangs: every message is labelled or
failed with a reason, and nothing that was answered is asked again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.store import sidecars
from tests.labels.server import Fault, Server, label, material
from tests.labels.stores import judge, store_of

GOOD = label("POSITIVE")
SAID = {
    "plain": GOOD,
    "fence": f"```json\n{GOOD}\n```",
    "thought": f"<think>{label('NEGATIVE')} or not?</think>\n{GOOD}",
    "open thought": f"is it {label('NEGATIVE')}? no.</think>{GOOD}",
    "sentence": f"Here you are: {GOOD} Hope this helps.",
    "tabs": GOOD.replace("because", "be\tcause"),
    "two": f"{GOOD} or {label('NEGATIVE')}",
    "prose": "rather positive",
    "other class": label("HAPPY"),
    "nothing": "",
}
FAULTS: dict[str, Fault] = {"busy": 429, "down": 503, "broken": "cut", "garbled": "{", "too long": 400, "stuck": "hang"}
ONCE = ("busy", "down", "broken", "garbled", "slow")
REASONS = {
    "two": "several_answers",
    "prose": "invalid_json",
    "nothing": "invalid_json",
    "other class": "invalid_answer",
    "refused": "refusal",
    "too long": "refused",
    "stuck": "no_answer",
}
"""What fails, with its reason; everything else is labelled."""


def misbehaves(server: Server) -> None:
    seen: Counter[str] = Counter()

    def fault(body: dict[str, Any]) -> Fault:
        kind = material(body).rpartition(" ")[0]
        seen[material(body)] += 1
        if kind in ONCE and seen[material(body)] > 1:
            return None
        return "hang" if kind == "slow" else FAULTS.get(kind)

    server.fault = fault
    server.answers = lambda body: SAID.get(material(body).rpartition(" ")[0], GOOD)
    server.refuses = lambda body: "I won't." if material(body).startswith("refused") else None


@pytest.mark.slow
def test_everything_is_labelled_or_failed_and_nothing_is_asked_twice(tmp_path: Path, server: Server) -> None:
    kinds = [*SAID, *FAULTS, "slow", "refused"]
    # Sound ones between them: a server that does nothing but hang is another case (test_live).
    store = store_of(
        tmp_path, *[[f"{kind} {n}", f"plain {9 * n + at}"] for at, kind in enumerate(kinds) for n in (1, 2)]
    )
    misbehaves(server)
    messages = {f"{kind} {n}" for kind in kinds for n in (1, 2)} | {
        f"plain {9 * n + at}" for at in range(len(kinds)) for n in (1, 2)
    }
    first = judge(store, server, concurrency=4, timeout_s=0.5)
    assert first.failed == dict(Counter(reason for reason in REASONS.values() for _ in range(2)))
    labelled = {text for text in messages if text.rpartition(" ")[0] not in REASONS}
    assert all(server.answered[text] == 1 for text in labelled), "what was answered is not asked again"
    assert all(failure["detail"] for failure in first.failures)
    wrapped = {text for text in labelled if text.rpartition(" ")[0] in ("fence", "thought", "open thought", "sentence")}
    assert (first.unwrapped, first.loosely_parsed) == (len(wrapped), 2)
    stored = sidecars.labels_of(store.folder, "sentiment", "openai:tiny")
    assert {row.label.value for row in stored} == {"POSITIVE"}, "what was thought aloud is no answer"
    assert first.labelled + sum(first.failed.values()) == 2 * 2 * len(kinds)

    before = dict(server.answered)
    second = judge(store, server, concurrency=4, timeout_s=0.5)
    assert second.failed == first.failed, "the next run asks what failed, and only that"
    assert {text for text in messages if server.answered[text] > before.get(text, 0)} <= messages - labelled
    server.fault, server.answers, server.refuses = lambda _: None, lambda _: GOOD, lambda _: None
    third = judge(store, server, concurrency=4, timeout_s=0.5)
    assert third.failed == {} and third.labelled == 2 * 2 * len(kinds)
    assert all(server.answered[text] == 1 for text in labelled)
