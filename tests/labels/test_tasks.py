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


def scored(score: int, band: str) -> tuple[str, dict[str, Any], str, float | None, dict[str, Any] | None]:
    return "session_success", {**SIX, "score": score}, str(score), float(score), {**SIX, "band": band}


def followed(score: int, value: str) -> tuple[str, dict[str, Any], str, float | None, dict[str, Any] | None]:
    answer = {"score": score, "instruction": "", "opposite_action": ""}
    return "instruction_adherence", answer, value, None, {"score": score}


def planned(score: int, value: str, **more: bool) -> tuple[str, dict[str, Any], str, float | None, dict[str, Any]]:
    answer = {"score": score, "no_solution": bool(more)}
    return "plan_optimality", answer, value, None, {"score": score} | more


@pytest.mark.parametrize(
    ("name", "answer", "value", "number", "detail"),
    [
        ("sentiment", {"label": "NEGATIVE"}, "NEGATIVE", None, None),
        ("pushback_released", {"label": "takeover"}, "takeover", None, None),
        ("prompt_intent", {"label": "create_new_code"}, "create_new_code", None, None),
        ("persona", {"label": "nitpicker", "confidence": 80}, "nitpicker", None, {"confidence": 80}),
        *(scored(score, "resolved") for score in (100, 90)),
        *(scored(*pair) for pair in ((89, "goal met"), (50, "progress"), (30, "goal missed"), (10, "little"))),
        *(scored(score, "nothing") for score in (9, 0)),
        ("task_paraphrase_accuracy", {"restated": True, "score": 3}, "3", 0.75, None),
        *(planned(*pair) for pair in ((5, "optimal"), (4, "optimal"), (3, "suboptimal"), (0, "wrong_direction"))),
        planned(1, "wrong_direction", no_solution=True),
        *(followed(*pair) for pair in ((5, "full"), (4, "partial"), (3, "partial"), (2, "ignored"), (1, "ignored"))),
        ("conflation_turn", {"beyond": True, "turn": 2}, "2", 2.0, None),
        ("conflation_turn", {"beyond": False, "turn": 0}, "none", None, None),
        ("goal_alignment_at_close", {"score": 1, "goal_turn": 2}, "1", 0.25, {"goal_turn": 2}),
        ("repo_domain", {"domain": "library", "audience": "researcher"}, "library", None, {"audience": "researcher"}),
    ],
)
def test_answers_become_verdicts(
    name: str, answer: dict[str, Any], value: str, number: float | None, detail: dict[str, Any] | None
) -> None:
    found = task(name).verdict(json.dumps({"reason": "r", **answer}), Case(3, "x"))
    assert found == Verdict(value, "r", number, detail)


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
    detail = {"score": 0, "instruction": instruction, "opposite_action": action}
    try:
        found = task("instruction_adherence").verdict(json.dumps({"reason": "r", **detail}), Case(1, SHOWN))
    except Unfit as problem:
        assert problem.reason == "quote_not_found" and not holds
    else:
        assert found == Verdict("contradicted", "r", None, detail) and holds


def test_no_restatement_is_no_verdict() -> None:
    answer = '{"restated": false, "score": 0, "reason": "acts at once"}'
    assert task("task_paraphrase_accuracy").verdict(answer, Case(1)) == Absent("not_applicable", "no_restatement")


SCORES = ('"70"', "70.5", "101", "-1", "NaN", "true", "null")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("sentiment", "", "invalid_json"),
        ("sentiment", "NEGATIVE", "invalid_json"),
        ("sentiment", '{"label": "NEGATIVE", "reason": "cut', "invalid_json"),
        ("sentiment", '```json\n{"label": "NEGATIVE", "reason": "r"}\n```', "invalid_json"),
        ("sentiment", '{"label": "NEGATIVE", "label": "POSITIVE", "reason": "r"}', "invalid_json"),
        ("sentiment", "[" * 100_000, "invalid_json"),
        ("sentiment", '{"label": "negative", "reason": "r"}', "invalid_answer"),
        ("sentiment", '{"label": "NEGATIVE"}', "invalid_answer"),
        ("sentiment", '{"label": "NEGATIVE", "reason": null}', "invalid_answer"),
        ("sentiment", '["NEGATIVE", "r"]', "invalid_answer"),
        ("conflation_turn", '{"beyond": true, "turn": 3, "reason": "r"}', "no_such_turn"),
        ("goal_alignment_at_close", '{"score": 2, "goal_turn": 3, "reason": "r"}', "no_such_turn"),
        *(
            ("session_success", json.dumps({**SIX, "reason": "r"})[:-1] + f', "score": {score}}}', "invalid_")
            for score in SCORES
        ),
    ],
)
def test_nothing_is_bent_into_an_answer(name: str, text: str, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        task(name).verdict(text, Case(3))
    assert caught.value.reason.startswith(reason)


def test_fields_that_were_not_asked_for_are_left_out() -> None:
    """Models add a confidence or a domain where a server does not hold them to the schema."""
    text = '{"label": "NEGATIVE", "confidence": 0.9, "reason": "r", "domain": "code"}'
    assert task("sentiment").verdict(text, Case(3)) == Verdict("NEGATIVE", "r")


def test_raw_control_characters_in_a_reason_pass_and_are_told_apart() -> None:
    """xgrammar lets a raw tab through in bounded strings (design/labels.md#answers-by-schema): an answer all the
    same, and counted."""
    text = '{"label": "NEUTRAL", "reason": "a\tb"}'
    found = task("sentiment").verdict(text, Case(1))
    assert isinstance(found, Verdict) and found.reason == "a\tb"
    assert not is_strict(text) and is_strict(text.replace("\t", "\\t"))
