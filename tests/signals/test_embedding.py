"""Context pollution and what follows from it."""

from __future__ import annotations

import pytest

from agentsignals.embedding import DISABLED, counting_vectors
from agentsignals.model import Absent
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path as signal_of
from agentsignals.signals.catalog import explain, measure, values
from agentsignals.signals.dynamics import drift_onset_turn, max_cp
from agentsignals.views.session import NO_EVIDENCE
from tests.build import Part, say, think, user, view
from tests.signals.ask import absent, detail, evidence, value

CURVE, MOST, ONSET = "dynamics.cp_curve[]", "dynamics.max_cp", "dynamics.drift_onset_turn"
COHERENCE, CLOSE = "dynamics.intent_coherence_curve[]", "anticipation.close_request_overlap"

CLIENT = "Add a retry with backoff to the download client when the server times out"
ABOUT_CLIENT = "The download client retries with backoff now when the server times out."
INVOICE = "Translate the invoice template into Portuguese"
ABOUT_INVOICE = "The invoice template is translated into Portuguese."


def talk(*said: str) -> list[Part]:
    """The person and the agent in turn."""
    return [user(text) if n % 2 == 0 else say(text) for n, text in enumerate(said)]


def test_a_talk_that_keeps_to_its_request_stays_at_zero() -> None:
    kept = view(*talk(CLIENT, ABOUT_CLIENT, "does the client wait between retries?", ABOUT_CLIENT))
    assert value(kept, CURVE) == [0.0, 0.0]
    assert detail(kept, CURVE)["shape"] == "flat"
    assert value(kept, MOST) == 0.0
    assert absent(kept, ONSET) == ("none_found", "never_above")


def test_another_subject_rises_as_the_old_one_leaves_the_window_of_three_turns() -> None:
    moved = view(*talk(CLIENT, ABOUT_CLIENT, *([INVOICE, ABOUT_INVOICE] * 4)))
    curve = value(moved, CURVE)
    assert curve[0] == 0.0
    assert curve[3:] == [1.0, 1.0]
    assert 0 <= curve[1] < curve[2] < curve[3]
    assert detail(moved, MOST) == {"turn": 3, "band": "severe"}


def test_the_request_itself_is_not_among_what_it_is_compared_with() -> None:
    at_once = view(*talk(CLIENT, "Ok.", INVOICE, ABOUT_INVOICE))
    assert value(at_once, CURVE) == [0.0, 1.0]
    assert value(at_once, ONSET) == 1
    assert detail(at_once, ONSET) == {"band": "started_wrong", "sustained": None}
    assert detail(at_once, CURVE)["shape"] == "sharp"


@pytest.mark.parametrize(
    ("turns_on_it", "band"),
    [(1, "started_wrong"), (2, "early"), (6, "mid_session"), (12, "late_mid"), (17, "late")],
)
def test_the_onset_has_a_band(turns_on_it: int, band: str) -> None:
    moved = view(*talk(*([CLIENT, ABOUT_CLIENT] * turns_on_it), *([INVOICE, ABOUT_INVOICE] * 4)))
    assert detail(moved, ONSET)["band"] == band
    assert detail(moved, ONSET)["sustained"] is not None


@pytest.mark.parametrize(
    ("curve", "onset", "sustained", "band"),
    [
        ([0.0, 0.2, 0.21], 2, None, "moderate"),
        ([0.0, 0.45, 0.3], 1, 1, "moderate"),
        ([None, 0.0, 0.46], 2, None, "severe"),
    ],
)
def test_the_cuts_are_passed_only_above_them(
    curve: list[float | None], onset: int, sustained: int | None, band: str
) -> None:
    three = view(user("one of three"), user("two of three"), user("three of three"))
    found = drift_onset_turn(three, NO_EVIDENCE, curve)
    assert isinstance(found, Measured)
    assert (found.value, found.detail["sustained"]) == (onset, sustained)
    most = max_cp(three, NO_EVIDENCE, curve)
    assert isinstance(most, Measured)
    assert most.detail["band"] == band


def test_an_aside_is_no_sustained_drift() -> None:
    aside = view(*talk(CLIENT, "Ok.", INVOICE, ABOUT_INVOICE, *([CLIENT, ABOUT_CLIENT * 3] * 3)))
    assert value(aside, ONSET) == 1
    assert detail(aside, ONSET)["sustained"] is None


def test_what_asks_for_nothing_is_no_anchor() -> None:
    late = view(
        user("/review", "slash_command"), say("Hm."), *talk("hello", "Hi!", CLIENT, ABOUT_CLIENT, "ok", "Fine.")
    )
    assert value(late, CURVE)[:3] == [None, None, 0.0]
    assert detail(late, CURVE)["anchor_turn"] == 2
    assert absent(view(*talk("hello", "Hi!", "yes", "Fine.")), CURVE) == ("not_applicable", "no_request")


@pytest.mark.parametrize("path", [CURVE, MOST, ONSET, COHERENCE])
def test_one_turn_has_no_course(path: str) -> None:
    assert absent(view(*talk(CLIENT, ABOUT_CLIENT)), path) == ("not_applicable", "one_turn")


@pytest.mark.parametrize("path", [CURVE, MOST, ONSET, COHERENCE, CLOSE])
def test_without_an_embedder_it_is_said(path: str) -> None:
    two = view(*talk(CLIENT, ABOUT_CLIENT, INVOICE, ABOUT_INVOICE))
    results = {r.signal.path: r.value for r in measure(two, {"vectors": DISABLED})}
    assert results[path] == Absent("backend_disabled", "embedder")


def test_a_window_without_words_is_null_not_zero() -> None:
    empty = view(*talk(CLIENT, ABOUT_CLIENT), *map(user, ("…", "?", "!", "?!")))
    assert value(empty, CURVE)[4] is None
    none_at_all = view(user(CLIENT), user("…"))
    assert value(none_at_all, CURVE) == [0.0, None]
    assert absent(none_at_all, MOST) == ("not_computable", "no_text")


def test_code_links_and_thinking_are_no_part_of_the_talk() -> None:
    code = f"```\n{INVOICE * 20}\n``` see https://example.org/{'invoice/portuguese/' * 9}"
    two = [user(CLIENT), say(ABOUT_CLIENT), user("why?"), think(INVOICE * 9), say(f"{ABOUT_CLIENT} {code}")]
    assert value(view(*two), CURVE) == [0.0, 0.0]
    assert value(view(*two), COHERENCE)[1] == 1.0


def test_a_long_paste_does_not_push_the_answer_out() -> None:
    pasted = view(*talk(CLIENT, ABOUT_CLIENT, "invoice " * 9000, ABOUT_CLIENT))
    assert detail(pasted, CURVE)["raw"][1] < 1


def test_coherence_is_one_for_an_answer_to_the_question_and_null_for_none() -> None:
    some = view(user(CLIENT), say(ABOUT_CLIENT), user(INVOICE), say(ABOUT_INVOICE), user("and?"))
    assert value(some, COHERENCE) == [1.0, 0.0, None]


def test_the_close_is_compared_with_the_request() -> None:
    assert value(view(*talk(CLIENT, ABOUT_CLIENT)), CLOSE) == 1.0
    moved = view(user(CLIENT), say(ABOUT_CLIENT), user(INVOICE), say(ABOUT_INVOICE), user("thanks"))
    assert value(moved, CLOSE) == 0.0
    assert detail(moved, CLOSE)["answer_turn"] == 1
    assert detail(moved, CLOSE)["confidence"] == "low"
    assert absent(view(user(CLIENT)), CLOSE) == ("not_applicable", "no_answer")
    assert absent(view(user(CLIENT), say("…")), CLOSE) == ("not_computable", "no_words")


def test_every_value_names_its_embedder_and_scale() -> None:
    two = view(*talk(CLIENT, ABOUT_CLIENT, INVOICE, ABOUT_INVOICE))
    by_words = {r.signal.path: r for r in measure(two)}
    by_chars = {r.signal.path: r for r in measure(two, {"vectors": counting_vectors("chars")})}
    for path in (CURVE, COHERENCE, CLOSE):
        assert by_words[path].detail["embedder"] == "words-1"
        assert by_chars[path].detail["embedder"] == "chars-1"
        assert by_chars[path].detail["calibration"] != by_words[path].detail["calibration"]
    assert by_words[CURVE].detail["raw"] != by_chars[CURVE].detail["raw"]


def test_explaining_shows_what_was_compared() -> None:
    two = view(*talk(CLIENT, ABOUT_CLIENT, INVOICE, ABOUT_INVOICE))
    shown = evidence(two, CURVE)
    assert [(i.role, i.line) for i in shown.items] == [("support", 1), ("denominator", 3)]
    assert "turn 1: CP" in shown.items[1].excerpt
    assert "0.56" in shown.rules[0]
    chars = {"vectors": counting_vectors("chars")}
    _, told, _ = explain(signal_of(CURVE), two, {**values(two, chars), **chars})
    assert told["embedder"] == "chars-1"
