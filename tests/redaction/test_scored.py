"""Values near a word for a secret are judged by a score: what no rule has a place for is masked, an id stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.redaction import by_rules, redacted, scored
from agentsignals.redaction.values import present
from tests.quick import each_row


def judged(text: str) -> list[str]:
    low = text.lower()
    parts = present(low)
    return [text[s.start : s.end] for s in scored.judged(text, low, parts, [*by_rules(text, low, parts)])]


def by_score(text: str) -> list[str]:
    low = text.lower()
    return [text[s.start : s.end] for s in scored.judged(text, low, present(low), [])]


@each_row(
    ("text", "secret"),
    [
        ("the password lies under the mat: Quilt88!river", "Quilt88!river"),
        ("the new password for staging is lingonberry", "lingonberry"),
        ("user mia opened it (key and all): gh7!Lk2pQz9", "gh7!Lk2pQz9"),
    ],
)
def test_what_stands_in_no_known_place_is_masked_by_its_score(
    text: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert secret in by_score(text)
    assert secret not in redacted(text)
    with monkeypatch.context() as patch:
        patch.setattr(scored.scorer().net, "least", 99.0)
        assert not by_score(text)


def test_a_low_score_takes_back_what_a_rule_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Boarding pass: LH1042 FRA-CDG"
    assert not judged(text)
    monkeypatch.setattr(scored.scorer().net, "veto", -99.0)
    assert judged(text)


def test_what_is_unlikely_by_itself_and_the_words_before_it_is_not_asked_more(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the password lies under the mat: Quilt88!river"
    assert by_score(text)
    monkeypatch.setattr(scored, "_UNLIKELY", 99.0)
    assert not by_score(text)
    assert "hunter2" in judged("DB_PASSWORD=hunter2")


@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_no_value_of_a_form_that_the_net_masks_is_unlikely(every: int) -> None:
    score, least = scored.scorer(), 0.0
    for path in (Path(__file__).with_name("secret_forms.jsonl"), Path("benchmarks/secret_forms.jsonl")):
        rows = [row for row in map(json.loads, path.read_text("utf-8").splitlines()) if isinstance(row, list)]
        for text in (row[1] for row in rows[::every]):
            for found in scored.candidates(text, text.lower(), present(text.lower())):
                parts = [*scored.in_turn(text, found)]
                assert sum(len({*part}) for part in parts) == len({*scored.facts(text, found)})
                if score(scored.facts(text, found)) > score.net.least:
                    least = min(least, score([*parts[0], *parts[1]]))
    assert least > scored._UNLIKELY + 2


def test_what_a_name_is_given_stays_masked_whatever_its_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored.scorer().net, "veto", 99.0)
    monkeypatch.setattr(scored.scorer().net, "least", 99.0)
    assert judged("DB_PASSWORD=hunter2") == ["hunter2"]
    assert not judged("mysql -u root -phunter2 shop")


def test_of_several_words_those_are_masked_that_are_picked_out() -> None:
    assert redacted("password is correct-horse-battery-9 configured") == "password is [secret] configured"


@each_row(
    "text",
    [
        '"requestId":"req_011CXGzmRJmRZK1Tw6EcgjSM","type":"assistant","token":1',
        "login test in tests/auth.py::Python3TC::test_login_2 FAILED",
        "image of the login page: https://x.test/hooks.png?w=840&fit=max&auto=format&n=z2YM37Ycg6eMbID3&q=85",
        "the password is [secret] and it stays, since the line was judged",
    ],
)
def test_ids_addresses_and_lines_that_were_masked_stay(text: str) -> None:
    assert not judged(text)


def test_a_word_is_judged_within_its_signs() -> None:
    text = "login: -pKettle61!x --to=Raven7!pebble bob:Tram85!velvet@h1"
    low = text.lower()
    found = [text[c.start : c.end] for c in scored.candidates(text, low, present(low))]
    assert found == ["Kettle61!x", "Raven7!pebble", "Tram85!velvet"]


def test_a_sum_of_vectors_in_one_integer_is_the_sum_of_their_numbers() -> None:
    net = scored.Net(
        least=0.0,
        veto=0.0,
        step=0.5,
        names=["a", "b"],
        vectors=bytes((130, 120, 131, 128, 140, 126)),
        bias=1.0,
        hidden=[[1.0, 2.0]],
        hidden_bias=[0.25],
        out=[10.0],
    )
    # a: 1, -4, 1.5; b: 0, 6, -1
    assert scored.Scorer(net)(["a", "b", "b", "none"]) == 1.0 + 1.0 + 10.0 * (0.25 + 1.0 * 2 + 2.0 * 0.5)
    assert scored.Scorer(net)(["b"]) == 1.0 + 10.0 * (0.25 + 6.0)
    assert scored.Scorer(net)([]) == 1.0 + 10.0 * 0.25
