"""What tasks ask for, and what they make of answers."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from agentsignals.errors import UsageError
from agentsignals.labels.tasks import Case, Unfit, Verdict, answer_in, is_strict, task, tasks
from agentsignals.model import Absent

SIX = {"goal_completion": 90, "final_state": 80, "agent_efficiency": 70, "code_quality": 60, "user_experience": 50}


@pytest.mark.parametrize("name", tasks())
def test_every_task_has_a_prompt_that_names_its_answer(name: str) -> None:
    one = task(name)
    assert all(f'"{field}"' in one.prompt for field in one.schema["properties"])
    assert all(value in one.prompt for value in one.values if name not in ("plan_optimality", "instruction_adherence"))
    assert "material" in one.prompt and "not you" in one.prompt, "whatever the text asks for, asks the agent"


@pytest.mark.parametrize("name", tasks())
def test_schemas_are_ones_that_every_backend_can_enforce(name: str) -> None:
    """No field optional, no other allowed, no reference, and no bound on a string: xgrammar lets raw control characters
    through where there is one, and no quotation mark (design/labels.md#answers-by-schema)."""
    schema = task(name).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object" and schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])
    told = json.dumps(schema)
    assert not any(word in told for word in ("$ref", "$defs", "maxLength", "pattern", "default"))


@pytest.mark.parametrize("name", tasks())
def test_a_judge_gives_its_reason_before_its_verdict(name: str) -> None:
    assert next(iter(task(name).schema["properties"])) == "reason"
    assert task(name).prompt.index('"reason"') < min(
        task(name).prompt.rindex(f'"{field}"') for field in task(name).schema["properties"] if field != "reason"
    )
    assert "JSON" not in task(name).codebook, "people go by it, too"


OBJECT = '{"reason": "vexed", "label": "NEGATIVE"}'
OTHER = '{"reason": "pleased", "label": "POSITIVE"}'


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (OBJECT, "NEGATIVE"),
        (f"```json\n{OBJECT}\n```", "NEGATIVE"),
        (f"<think>Perhaps {OTHER}? No.</think>\n{OBJECT}", "NEGATIVE"),
        (f"<Thinking>{{maybe}}</Thinking>{OBJECT}", "NEGATIVE"),
        (f"Perhaps {OTHER}.</think>{OBJECT}", "NEGATIVE"),  # the template opened the thought
        (f"Here is {{my}} judgement:\n{OBJECT}\nHope this helps.", "NEGATIVE"),
        (f"[{OBJECT}]", "NEGATIVE"),
        (f"{OBJECT}\n\n{OBJECT}", "NEGATIVE"),
        (f'{{"example": 1}} {OBJECT}', "NEGATIVE"),
        (f"{OBJECT} or {OTHER}", "several_answers"),
        (f"<think>{OBJECT}</think>", "invalid_json"),
        (f"<think>{OBJECT}", "invalid_json"),
        (f'{{"answer": {OBJECT}}}', "invalid_answer"),  # what is within another object may be an alternative
        ('I say {"label": "ANGRY", "reason": "r"}', "invalid_json"),
        ('{"label": "ANGRY", "reason": "r"}', "invalid_answer"),
        ("{" * 100_000, "invalid_json"),
        ('{"a":' * 100_000, "invalid_json"),
        ("I would say it is rather neutral.", "invalid_json"),
    ],
)
def test_the_answer_is_read_wherever_it_stands(written: str, expected: str) -> None:
    one = task("sentiment")
    try:
        verdict = one.verdict(answer_in(one.answer, written), Case())
    except Unfit as problem:
        assert problem.reason == expected
    else:
        assert isinstance(verdict, Verdict) and verdict.value == expected


def test_a_prompts_version_is_its_text() -> None:
    hashes = {one.prompt_hash for one in tasks().values()}
    assert len(hashes) == len(tasks())
    assert task("sentiment").prompt_hash == "30d3bcbee773", (
        "the prompt changed: labels made with it are another version"
    )


def test_an_unknown_task_names_the_known() -> None:
    with pytest.raises(UsageError) as caught:
        task("mood")
    assert "sentiment" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "answer", "value", "number"),
    [
        ("sentiment", {"label": "NEGATIVE", "reason": "vexed"}, "NEGATIVE", None),
        ("pushback_released", {"label": "takeover", "reason": "r"}, "takeover", None),
        ("prompt_intent", {"label": "create_new_code", "reason": "r"}, "create_new_code", None),
        ("persona", {"label": "nitpicker", "confidence": 80, "reason": "r"}, "nitpicker", None),
        ("session_success", {**SIX, "score": 69, "reason": "r"}, "69", 69.0),
        ("task_paraphrase_accuracy", {"restated": True, "score": 3, "reason": "r"}, "3", 0.75),
        ("plan_optimality", {"score": 4, "no_solution": False, "reason": "r"}, "optimal", None),
        ("plan_optimality", {"score": 3, "no_solution": False, "reason": "r"}, "suboptimal", None),
        ("plan_optimality", {"score": 1, "no_solution": True, "reason": "r"}, "wrong_direction", None),
        ("conflation_turn", {"beyond": True, "turn": 2, "reason": "r"}, "2", 2.0),
        ("conflation_turn", {"beyond": False, "turn": 0, "reason": "r"}, "none", None),
        ("goal_alignment_at_close", {"score": 1, "goal_turn": 2, "reason": "r"}, "1", 0.25),
    ],
)
def test_answers_become_verdicts(name: str, answer: dict[str, Any], value: str, number: float | None) -> None:
    found = task(name).verdict(json.dumps(answer), Case(3))
    assert isinstance(found, Verdict)
    assert (found.value, found.number, found.reason) == (value, number, answer["reason"])


BANDS = [(100, "resolved"), (90, "resolved"), (89, "goal met"), (50, "progress")]
BANDS += [(30, "goal missed"), (10, "little"), (9, "nothing"), (0, "nothing")]


@pytest.mark.parametrize(("score", "band"), BANDS)
def test_success_keeps_its_dimensions_and_names_its_band(score: int, band: str) -> None:
    found = task("session_success").verdict(json.dumps({**SIX, "score": score, "reason": "r"}), Case(1))
    assert isinstance(found, Verdict)
    assert found.detail == {**SIX, "band": band}


@pytest.mark.parametrize(
    ("score", "value"), [(5, "full"), (4, "partial"), (3, "partial"), (2, "ignored"), (1, "ignored")]
)
def test_adherence_follows_trails_scale(score: int, value: str) -> None:
    answer = {"score": score, "instruction": "", "opposite_action": "", "reason": "r"}
    found = task("instruction_adherence").verdict(json.dumps(answer), Case(1, "x"))
    assert isinstance(found, Verdict) and found.value == value and found.detail == {"score": score}


SHOWN = "## Turn 0\nDon't touch\n the tests, please\n[edit] Edit: tests/test_a.py -> ok\n"


@pytest.mark.parametrize(
    ("instruction", "action", "holds"),
    [
        ("Don't touch the tests", "[edit] Edit: tests/test_a.py", True),
        ("Never touch the tests", "[edit] Edit: tests/test_a.py", False),
        ("Don't touch the tests", "", False),
        ("", " ", False),
    ],
)
def test_a_contradiction_is_believed_only_with_both_quotations(instruction: str, action: str, holds: bool) -> None:
    answer = json.dumps({"score": 0, "instruction": instruction, "opposite_action": action, "reason": "r"})
    if holds:
        found = task("instruction_adherence").verdict(answer, Case(1, SHOWN))
        assert isinstance(found, Verdict) and found.value == "contradicted"
        assert found.detail == {"score": 0, "instruction": instruction, "opposite_action": action}
    else:
        with pytest.raises(Unfit) as caught:
            task("instruction_adherence").verdict(answer, Case(1, SHOWN))
        assert caught.value.reason == "quote_not_found"


def test_no_restatement_is_no_verdict() -> None:
    found = task("task_paraphrase_accuracy").verdict(
        '{"restated": false, "score": 0, "reason": "acts at once"}', Case(1)
    )
    assert found == Absent("not_applicable", "no_restatement")


@pytest.mark.parametrize("name", ["conflation_turn", "goal_alignment_at_close"])
def test_a_turn_that_is_not_there_is_no_answer(name: str) -> None:
    answer = {"beyond": True, "turn": 3} if name == "conflation_turn" else {"score": 2, "goal_turn": 3}
    with pytest.raises(Unfit) as caught:
        task(name).verdict(json.dumps({**answer, "reason": "r"}), Case(3))
    assert caught.value.reason == "no_such_turn"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "invalid_json"),
        ("NEGATIVE", "invalid_json"),
        ('{"label": "NEGATIVE", "reason": "cut', "invalid_json"),
        ('```json\n{"label": "NEGATIVE", "reason": "r"}\n```', "invalid_json"),
        ('{"label": "NEGATIVE", "label": "POSITIVE", "reason": "r"}', "invalid_json"),
        ('{"label": "negative", "reason": "r"}', "invalid_answer"),
        ('{"label": "NEGATIVE"}', "invalid_answer"),
        ('{"label": "NEGATIVE", "reason": null}', "invalid_answer"),
        ('{"label": "NEGATIVE", "reason": "r", "more": 1}', "invalid_answer"),
        ('["NEGATIVE", "r"]', "invalid_answer"),
        ("[" * 100_000, "invalid_json"),
    ],
)
def test_nothing_is_bent_into_an_answer(text: str, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        task("sentiment").verdict(text, Case(1))
    assert caught.value.reason == reason


@pytest.mark.parametrize("score", ['"70"', "70.5", "101", "-1", "NaN", "true", "null"])
def test_a_score_is_a_whole_number_in_its_range(score: str) -> None:
    with pytest.raises(Unfit):
        task("session_success").verdict(json.dumps({**SIX, "reason": "r"})[:-1] + f', "score": {score}}}', Case(1))


def test_raw_control_characters_in_a_reason_pass_and_are_told_apart() -> None:
    """xgrammar lets a raw tab through in bounded strings (design/labels.md#answers-by-schema): an answer all the
    same, and counted."""
    text = '{"label": "NEUTRAL", "reason": "a\tb"}'
    found = task("sentiment").verdict(text, Case(1))
    assert isinstance(found, Verdict) and found.reason == "a\tb"
    assert not is_strict(text) and is_strict(text.replace("\t", "\\t"))
