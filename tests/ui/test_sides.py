"""Two sessions side by side: how their steps are aligned, and the page."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.ui.alignment import ENDS, MOST_CELLS, MOST_SHOWN, Facing, Step, aligned, shown
from agentsignals.ui.server import Server
from tests.analysis.stores import store_of
from tests.build import call, say, session, user
from tests.ui.served import EVIL, EVIL_ID, Elements, ask, page, serving, whole_store


def steps(deeds: str) -> list[Step]:
    """A letter a step: in upper case another file of the same tool."""
    return [Step(seq=n, kind=deed.lower(), tool=deed.lower(), about=deed) for n, deed in enumerate(deeds)]


def shape(left: str, right: str) -> str:
    return "".join(
        {"same": "=", "alike": "~", "left": "<", "right": ">"}[r.how] for r in aligned(steps(left), steps(right)).rows
    )


@pytest.mark.parametrize(
    ("left", "right", "wanted", "parts_at"),
    [
        ("", "", "", None),
        ("abc", "abc", "===", None),
        ("abc", "abxc", "==>=", 2),
        ("abc", "ac", "=<=", 1),
        ("abc", "aBc", "=~=", 1),
        ("", "ab", ">>", 0),
        ("ab", "", "<<", 0),
        ("xabc", "abc", "<===", 0),
        ("aAAb", "ab", None, 1),
    ],
)
def test_steps_that_do_the_same_face_each_other(
    left: str, right: str, wanted: str | None, parts_at: int | None
) -> None:
    made = aligned(steps(left), steps(right))
    assert made.parts_at == parts_at
    assert wanted is None or shape(left, right) == wanted
    assert made.same == sum(row.how == "same" for row in made.rows)


@given(st.text("abAB", max_size=12), st.text("abAB", max_size=12))
def test_no_step_is_lost_nor_moved_and_as_many_face_as_can(left: str, right: str) -> None:
    made = aligned(steps(left), steps(right))
    assert [r.left.seq for r in made.rows if r.left] == list(range(len(left)))
    assert [r.right.seq for r in made.rows if r.right] == list(range(len(right)))
    assert all(r.left.deed == r.right.deed for r in made.rows if r.how == "same" and r.left and r.right)
    assert made.same >= _common(left, right) - sum(r.how == "alike" for r in made.rows)


def _common(left: str, right: str) -> int:
    """The longest common subsequence, by its definition."""
    row = [0] * (len(right) + 1)
    for a in left:
        before = row[:]
        for j, b in enumerate(right):
            row[j + 1] = before[j] + 1 if a == b else max(row[j], before[j + 1])
    return row[-1]


def test_a_path_counts_by_its_last_names_and_a_prompt_is_nobodys_parting() -> None:
    one = [Step(0, "prompt", "", "a"), Step(1, "read", "Read", "/runs/1/src/app.py")]
    two = [Step(0, "prompt", "", "b"), Step(1, "read", "cat", "/runs/2/src/app.py")]
    made = aligned(one, two)
    assert [row.how for row in made.rows] == ["alike", "same"] and made.parts_at is None


@pytest.mark.parametrize(
    ("same", "rows"), [(2 * ENDS + 1, 2 * ENDS + 1), (2 * ENDS + 2, 2 * ENDS + 1), (900, 2 * ENDS + 1)]
)
def test_a_long_stretch_of_the_same_is_folded_to_its_ends(same: int, rows: int) -> None:
    listed = shown(aligned(steps("a" * same), steps("a" * same)).rows)
    assert len(listed) == rows and listed[0][0] == 1 and listed[-1][0] == same
    assert sum(row if isinstance(row, int) else 1 for _, row in listed) == same


def test_no_more_rows_are_shown_than_a_page_holds() -> None:
    listed = shown([Facing(step, None, "left") for step in steps("ab" * MOST_SHOWN)])
    assert len(listed) == MOST_SHOWN


def test_what_is_too_long_is_cut_and_said_and_takes_no_time() -> None:
    long = steps("ab" * 2000)
    began = time.process_time()
    made = aligned(long, steps("ba" * 2000))
    assert time.process_time() - began < 10
    aligned_cells = (4000 - made.left_out[0]) * (4000 - made.left_out[1])
    assert made.left_out[0] > 0 and aligned_cells <= MOST_CELLS
    assert aligned(long, long).left_out == (0, 0)  # what is alike from the beginning is never too long


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sides")
    with serving(whole_store(folder / "store")) as running:
        yield running


def test_two_sessions_show_facts_signals_and_steps_that_lead_to_their_events(server: Server) -> None:
    told = page(server, f"/sides?a=fine-1&b={quote(EVIL_ID, safe='')}")
    seen = Elements(told)
    assert "here they part" in seen.said and "pytest -q" in seen.said and "Signals, furthest apart first" in seen.said
    links = [link for link in seen.all_of("href") if link.startswith("/session/fine-1?at=")]
    assert links and all(ask(server, link.partition("#")[0]).status == 200 for link in dict.fromkeys(links))
    assert "<script>window" not in told and "<img src=x" not in told


def test_attempts_show_their_outcomes_and_lead_to_others_of_the_task(server: Server) -> None:
    ids = [
        link.partition("?")[0].removeprefix("/session/")
        for link in Elements(page(server, "/attempts")).all_of("href")
        if link.startswith("/session/")
    ]
    one, two = list(dict.fromkeys(ids))[:2]
    told = Elements(page(server, f"/sides?a={one}&b={two}")).said
    assert "solved" in told and "failed" in told and "no conversation was collected" in told


@pytest.mark.parametrize("query", ["?a=fine-1&b=nobody", f"?a={quote(EVIL)}&b={quote(EVIL)}"])
def test_what_names_no_two_sessions_is_told_so(server: Server, query: str) -> None:
    got = ask(server, f"/sides{query}")
    assert got.status == 404 and "<script>window" not in got.text


def test_a_page_without_two_sessions_asks_for_them(server: Server) -> None:
    runs = Elements(page(server, "/attempts")).all_of("href")
    run = next(link.partition("?")[0] for link in runs if link.startswith("/session/")).removeprefix("/session/")
    near = Elements(page(server, f"/sides?a={run}")).all_of("href")
    [other] = [link for link in near if link.startswith("?") and "b=" in link]
    assert ask(server, f"/sides{other}").status == 200
    for query in ("", "?a=fine-1"):
        assert Elements(page(server, f"/sides{query}")).all_of("name").count("a") == 1


def test_a_session_beside_itself_never_parts(server: Server) -> None:
    told = Elements(page(server, "/sides?a=fine-1&b=fine-1")).said
    assert "the two never part" in told and "No number differs" in told


def test_numbers_are_ordered_by_the_share_of_the_store_between_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Failed calls differ by all that the store has, prompts by little of it."""
    made = [
        session(
            *[user("do it, please, and say when it is done")] * (1 + n % 2),
            *(call("Bash", command=f"make {k}", status="error" if k < n else "ok") for k in range(8)),
            say("done"),
            session_id=f"s{n}",
        )
        for n in range(8)
    ]
    with serving(store_of(tmp_path_factory.mktemp("order") / "store", *made)) as running:
        told = Elements(page(running, "/sides?a=s0&b=s7")).said
    apart = told[told.index("furthest apart") :]
    shares = [float(share) for share in re.findall(r"(\d+\.\d)%", apart)]
    assert shares == sorted(shares, reverse=True) and shares[0] > 80 > shares[-1]


@pytest.mark.parametrize(
    ("bound", "output", "wanted"),
    [(False, 125, "+25%"), (False, 400, "4 times"), (False, 100, "the same"), (True, 125, "not known: a lower bound")],
)
def test_a_figure_is_held_against_the_other_unless_it_is_a_lower_bound(
    bound: bool, output: int, wanted: str, tmp_path: Path
) -> None:
    """Twice a bound is no ratio of what was used."""
    made = []
    for name, tokens in (("one", 100), ("two", output)):
        one = session(user("do it"), say("done", model="m", output_tokens=tokens), session_id=name)
        one.artifact_id, one.conventions = name, ("usage_logged_midway",) if bound else ()
        made.append(one)
    with serving(store_of(tmp_path / "store", *made)) as running:
        said = " ".join(Elements(page(running, "/sides?a=one&b=two")).said.split())
    assert re.search(rf"tokens out \S*(?:>= )?100 (?:>= )?{output} {re.escape(wanted)}", said), said
