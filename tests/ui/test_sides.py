"""Two sessions side by side: how their steps are aligned, and the page."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from agentsignals.questions.alignment import AlignedRow, Step
from agentsignals.ui.pages.sessions import ENDS, MOST_SHOWN, shown
from agentsignals.ui.server import Server
from tests.build import call, say, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import ran
from tests.ui.served import EVIL, EVIL_ID, Elements, ask, page, serving, text_of


def steps(n: int) -> list[AlignedRow]:
    """Rows in which both do the same."""
    return [AlignedRow(step, step, "same") for step in (Step(seq=k, kind="read") for k in range(n))]


@pytest.mark.parametrize(
    ("same", "rows"), [(2 * ENDS + 1, 2 * ENDS + 1), (2 * ENDS + 2, 2 * ENDS + 1), (900, 2 * ENDS + 1)]
)
def test_a_long_stretch_of_the_same_is_folded_to_its_ends(same: int, rows: int) -> None:
    listed = shown(steps(same))
    assert len(listed) == rows and listed[0][0] == 1 and listed[-1][0] == same
    assert sum(row if isinstance(row, int) else 1 for _, row in listed) == same


def test_no_more_rows_are_shown_than_a_page_holds() -> None:
    listed = shown([AlignedRow(row.left, None, "left") for row in steps(2 * MOST_SHOWN)])
    assert len(listed) == MOST_SHOWN


def test_two_sessions_show_facts_signals_and_steps_that_lead_to_their_events(server: Server) -> None:
    told = page(server, f"/sides?a=fine-1&b={quote(EVIL_ID, safe='')}")
    seen = Elements(told)
    assert (
        "they go different ways" in seen.said
        and "pytest -q" in seen.said
        and "Largest differences in signals" in seen.said
    )
    links = [link for link in seen.all_of("href") if link.startswith("/session/fine-1?at=")]
    assert links and all(ask(server, link.partition("#")[0]).status == 200 for link in dict.fromkeys(links))
    jumps = {link[1:] for link in seen.all_of("href") if link.startswith("#")} - {"main"}
    assert {"fork", "differ"} <= jumps <= set(seen.all_of("id"))
    assert "<script>window" not in told and "<img src=x" not in told


def test_attempts_show_their_outcomes_and_lead_to_others_of_the_task(server: Server) -> None:
    ids = [
        link.partition("?")[0].removeprefix("/session/")
        for link in Elements(page(server, "/attempts")).all_of("href")
        if link.startswith("/session/")
    ]
    one, two = list(dict.fromkeys(ids))[:2]
    told = Elements(page(server, f"/sides?a={one}&b={two}")).said
    assert "solved" in told and "failed" in told and "No conversation was collected" in told


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
    assert "All calls of the two are the same" in told and "No numeric signal differs" in told


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
    apart = told[told.index("Largest differences") :]
    shares = [float(share) for share in re.findall(r"(\d+\.\d)%", apart)]
    assert shares == sorted(shares, reverse=True) and shares[0] > 80 > shares[-1]


@pytest.mark.parametrize(
    ("bound", "output", "wanted"),
    [(False, 125, "+25%"), (False, 400, "4 times"), (False, 100, "the same"), (True, 125, "unknown: a lower bound")],
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
        said = text_of(running, "/sides?a=one&b=two")
    assert re.search(rf"tokens out \S*(?:>= )?100 (?:>= )?{output} {re.escape(wanted)}", said), said


def test_attempts_at_a_task_are_beside_one_that_solved_it_and_lead_to_each_pair(tmp_path: Path) -> None:
    made = []
    for n, reward in enumerate([0.0, 1.0]):
        edit = call("Edit", path="/testbed/a.py", old_string="", new_string=f"n = {n}")
        run = ran(call("Read", path="/testbed/a.py"), edit, trial_id=f"t{n}", reward=reward).session
        run.session_id, run.artifact_id = f"s{n}", f"a{n}"
        made.append(run)
    with serving(store_of(tmp_path / "store", *made)) as running:
        seen = Elements(page(running, "/sides?task=task-1"))
        assert "a solved attempt" in seen.said and "2, 2" in seen.said
        [pair] = [link for link in seen.all_of("href") if link.startswith("?a=s1&b=s0")]
        assert "all attempts side by side" in Elements(page(running, f"/sides{pair.partition('#')[0]}")).said
        assert "Fewer than two" in Elements(page(running, "/sides?trial=t0")).said
        assert "Fewer than two" in Elements(page(running, f"/sides?task={quote(EVIL)}")).said
