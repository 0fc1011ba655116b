"""A table asked in one test says each row that fails."""

from __future__ import annotations

import pytest

from tests.quick import each_row


def test_each_row_is_asked_and_every_row_that_fails_is_told() -> None:
    asked = []

    def odd(n: int, word: str) -> None:
        asked.append(n)
        assert n % 2 == 1, word

    each_row("n, word", [(1, "a"), (3, "b")])(odd)()
    with pytest.raises(AssertionError, match="b") as one:
        each_row(("n", "word"), [(1, "a"), (2, "b"), (5, "c")])(odd)()
    assert one.value.__notes__ == ["the row (2, 'b')"]
    with pytest.raises(ExceptionGroup, match="2 of 3 rows"):
        each_row("n, word", [(4, "a"), (7, "b"), (6, "c")])(odd)()
    assert asked == [1, 3, 1, 2, 5, 4, 7, 6]
