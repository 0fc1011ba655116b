"""Words near a word for a secret are judged by a score: what no rule has a place for is masked, what is an id stays."""

from __future__ import annotations

import pytest

from agentsignals.redaction import redacted, scored
from agentsignals.redaction.values import present
from tests.quick import each_row


@each_row(
    ("text", "secret"),
    [
        ("the password lies under the mat: Quilt88!river", "Quilt88!river"),
        ("add a password, say, perhaps lingonberry", "lingonberry"),
        ("password rotation done\n  gh7!Lk2pQz9", "gh7!Lk2pQz9"),
        ("user mia opened it (key and all): gh7!Lk2pQz9", "gh7!Lk2pQz9"),
    ],
)
def test_what_stands_in_no_known_place_is_masked_by_its_score(
    text: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = text.lower()
    spans = list(scored.secrets(text, low, present(low)))
    assert [text[s.start : s.end] for s in spans] == [secret]
    assert secret not in redacted(text)
    with monkeypatch.context() as patch:
        patch.setattr(scored.WEIGHTS, "least", 99.0)
        patch.setattr(scored.WEIGHTS, "least_of_words", 99.0)
        assert not list(scored.secrets(text, low, present(low)))


@each_row(
    "text",
    [
        '"requestId":"req_011CXGzmRJmRZK1Tw6EcgjSM","type":"assistant","token":1',
        "login test in tests/auth.py::Python3TC::test_login_2 FAILED",
        "image of the login page: https://x.test/hooks.png?w=840&fit=max&auto=format&n=z2YM37Ycg6eMbID3&q=85",
        "the password is [secret] and gh7!Lk2pQz9 stays, since the line was judged",
    ],
)
def test_ids_addresses_and_lines_that_were_masked_stay(text: str) -> None:
    low = text.lower()
    assert not list(scored.secrets(text, low, present(low)))


def test_a_word_is_judged_within_its_signs() -> None:
    text = "login: -pKettle61!x --to=Raven7!pebble bob:Tram85!velvet@h1"
    low = text.lower()
    found = [text[c.start : c.end] for c in scored.candidates(text, low, present(low))]
    assert found == ["Kettle61!x", "Raven7!pebble", "Tram85!velvet"]
