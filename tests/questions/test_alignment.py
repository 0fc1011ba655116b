"""Runs beside each other: which steps face each other, and where two runs part."""

from __future__ import annotations

import json
import random
import shlex
import time
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentsignals.cli import build_parser, main
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.questions.alignment import (
    MOST_STEPS,
    NEXT,
    Alignment,
    Divergence,
    Place,
    Step,
    align,
    align_steps,
    divergence,
    reference_of,
)
from agentsignals.store import Store, artifact_id
from tests.build import Part, call, say, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import ran
from tests.verbs import printed, printed_json

STEPS = st.text("abcABC", max_size=14)
MARKS = {"same": "=", "alike": "~", "other": "x", "left": "<", "right": ">"}


def steps(deeds: str) -> list[Step]:
    """A letter a step: in upper case something else to the same file. `a` and `b` change it."""
    return [
        Step(seq=n, kind="edit", same=(deed,), named=(low,), alike=(low,), deeds=frozenset({("change", low, deed)}),
             files=frozenset(low), is_change=low in "ab")
        for n, deed in enumerate(deeds) for low in [deed.lower()]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "wanted", "differs"),
    [
        ("", "", "", None),
        ("abc", "abc", "===", None),
        ("abc", "abxc", "==>=", (3, 3)),
        ("abc", "ac", "=<=", (2, 2)),
        ("abc", "aBc", "=~=", (2, 2)),
        ("", "ab", ">>", (1, 1)),
        ("xabc", "abc", "<===", (1, 1)),
        ("ax", "ay", "=x", (2, 2)),
        ("abab", "ab", "==<<", (3, 3)),
    ],
)
def test_steps_that_do_the_same_face_each_other(
    left: str, right: str, wanted: str, differs: tuple[int, int] | None
) -> None:
    rows = align_steps(steps(left), steps(right))
    assert "".join(MARKS[row.how] for row in rows) == wanted
    place = divergence(rows).differs
    assert (place and (place.left, place.right)) == differs


@settings(max_examples=40)
@given(STEPS, STEPS)
def test_no_step_is_lost_nor_moved_and_as_many_face_as_can(left: str, right: str) -> None:
    rows = align_steps(steps(left), steps(right))
    assert [r.left.seq for r in rows if r.left] == list(range(len(left)))
    assert [r.right.seq for r in rows if r.right] == list(range(len(right)))
    assert all(r.left.same == r.right.same for r in rows if r.how == "same" and r.left and r.right)
    same = sum(row.how == "same" for row in rows)
    assert same == _common(left, right)
    assert same >= sum(b.size for b in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks())


def _common(left: str, right: str) -> int:
    """The longest common subsequence, by its definition."""
    row = [0] * (len(right) + 1)
    for a in left:
        before = row[:]
        for j, b in enumerate(right):
            row[j + 1] = before[j] + 1 if a == b else max(row[j], before[j + 1])
    return row[-1]


@settings(max_examples=40)
@given(STEPS, STEPS)
def test_the_other_way_round_runs_part_at_the_same_place(left: str, right: str) -> None:
    here, there = (divergence(align_steps(steps(a), steps(b))) for a, b in ((left, right), (right, left)))
    assert _mirrored(here) == _places(there)


@settings(max_examples=40)
@given(STEPS, st.integers(0, 14))
def test_a_run_beside_itself_never_parts_and_a_step_put_in_is_seen(deeds: str, at: int) -> None:
    assert _places(divergence(align_steps(steps(deeds), steps(deeds)))) == [None, None, None]
    at = min(at, len(deeds))
    apart = divergence(align_steps(steps(deeds), steps(f"{deeds[:at]}z{deeds[at:]}")))
    assert apart.differs and (apart.differs.left, apart.differs.right) == (at + 1, at + 1)
    assert apart.strays == apart.differs


def _places(apart: Divergence) -> list[tuple[int, int] | None]:
    places = (apart.differs, apart.strays, apart.parts and apart.parts.place)
    return [None if place is None else (place.left, place.right) for place in places]


def _mirrored(apart: Divergence) -> list[tuple[int, int] | None]:
    return [place and (place[1], place[0]) for place in _places(apart)]


FILE = "/repo/src/app.py"


def read(path: str = FILE, offset: int = 1) -> Part:
    return call("Read", path=path, offset=offset)


def edit(*lines: str, old: str = "", path: str = FILE, status: str = "ok") -> Part:
    return call("Edit", path=path, old_string=old, new_string="\n".join(lines), status=status)  # type: ignore[arg-type]


def script(name: str) -> list[Part]:
    return [call("Write", path=f"/repo/{name}", content=name, creates=True), call("Bash", command=f"python {name}")]


def beside(left: list[Part], right: list[Part]) -> Alignment:
    runs = [
        session(user("fix it"), *parts, session_id=name, cwd="/repo") for name, parts in (("a", left), ("b", right))
    ]
    [made] = align(runs, {})
    return made


MEND = edit("return round(x)", old="return int(x)")
RUNS_TESTS = call("Bash", command="pytest -q tests/test_app.py")
FIVE = tuple(f"step_{k} = {k}" for k in range(5))


@pytest.mark.parametrize(
    ("left", "right", "strays", "parts", "basis"),
    [
        pytest.param([read(), MEND], [read(offset=80), read(offset=9), MEND], None, None, "", id="other lines read"),
        pytest.param([read(), read("/repo/b.py"), MEND], [read("/repo/b.py"), read(), MEND], None, None, "", id="swap"),
        pytest.param([*script("try.py"), MEND], [*script("probe.py"), MEND], None, None, "", id="names of its scripts"),
        pytest.param([call("Grep", pattern="x"), MEND], [MEND], None, None, "", id="looks"),
        pytest.param([MEND], [edit("x(1)", status="error"), MEND], None, None, "", id="what failed changed nothing"),
        pytest.param([MEND], [MEND, edit("# rounds, as told")], None, None, "", id="a comment"),
        pytest.param([read(), MEND], [read(), read("/repo/b.py"), MEND], (2, 2), None, "", id="astray, and back again"),
        pytest.param([read(), MEND], [read(), edit("return x // 1")], (2, 2), (2, 2), "change", id="another change"),
        pytest.param([MEND], [MEND, RUNS_TESTS], (2, 2), (2, 2), "after", id="goes on to test"),
        pytest.param([read()], [read("/repo/b.py")], (1, 1), (1, 1), "course", id="nothing is changed"),
        pytest.param([MEND, *script("t.py")], [MEND, *script("t.py") * 2], None, None, "", id="goes on alone, shortly"),
        pytest.param([MEND, *script("t.py")], [MEND, *script("t.py") * 3], None, (4, 4), "after", id="goes on alone"),
        pytest.param([MEND], [MEND, *script("t.py"), call("Bash", command="rm t.py")], (2, 2), (2, 2), "after", id="x"),
    ],
)  # fmt: skip
def test_where_runs_part_is_no_matter_of_order_names_or_looks(
    left: list[Part], right: list[Part], strays: object, parts: object, basis: str
) -> None:
    apart = beside(left, right).divergence
    assert _places(apart)[1:] == [strays, parts]
    assert (apart.parts.basis if apart.parts else "") == basis


@pytest.mark.parametrize(("alike", "sure"), [(4, None), (3, False), (2, False), (1, True)])
def test_a_change_is_shared_from_four_fifths_of_its_lines_on_and_surely_not_below_a_quarter(
    alike: int, sure: bool | None
) -> None:
    others = [f"other_{k} = {k}" for k in range(5 - alike)]
    apart = beside([edit(*FIVE)], [edit(*FIVE[:alike], *others)]).divergence
    assert (apart.parts and apart.parts.sure) == sure
    assert apart.changes_shared == pytest.approx(alike / (10 - alike))


@pytest.mark.parametrize(("files", "strays"), [("a.py b.py", None), ("a.py b.py c.py", (2, 2))])
def test_any_other_step_is_shared_from_half_of_what_it_does_on(files: str, strays: tuple[int, int] | None) -> None:
    left, right = (call("Bash", command=f"pytest {named}") for named in ("a.py", files))
    assert _places(beside([left, MEND], [left, right, MEND]).divergence)[1] == strays


def test_lines_that_go_are_nothing_that_two_changes_share() -> None:
    """One writes the file anew with the line that the other takes out."""
    anew = call("Write", path=FILE, content="return int(x)\nreturn 2")
    assert beside([read(), anew], [read(), edit("return 3", old="return int(x)")]).divergence.changes_shared == 0


def test_a_patch_of_several_files_changes_the_lines_of_each() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 0\n+x = 1\n\n*** Add File: b.py\n+x = 2\n*** End Patch"
    runs = [
        session(call("apply_patch", patchText=text), session_id=name, format="opencode", cwd="/repo")
        for name, text in (("a", patch), ("b", patch.replace("x = 2", "x = 3")))
    ]
    [made] = align(runs, {})
    assert made.divergence.changes_shared == pytest.approx(1 / 3), "x = 1 of a.py, of that and two lines of b.py"


def test_what_fails_here_and_not_there_is_not_the_same() -> None:
    works, fails = (call("Bash", command="make all", status=status) for status in ("ok", "error"))  # type: ignore[arg-type]
    assert [row.how for row in beside([works], [fails]).rows] == ["same", "alike"]


@pytest.mark.parametrize(("others", "sure"), [(2, False), (3, True)])
def test_where_the_trace_does_not_say_what_a_quarter_of_steps_were_about_nothing_is_sure(
    others: int, sure: bool
) -> None:
    many = [call("mcp__box__do", what="x"), *[read()] * others]
    parting = beside([*many, MEND, MEND], [*many, edit("return 1")]).divergence.parts
    assert parting and parting.sure is sure
    assert sure or "unknown content" in parting.unsure


def test_each_side_says_what_it_did_next_how_much_failed_and_where_alone() -> None:
    fails = call("Bash", command="make all", status="error")
    parting = beside([read(), MEND], [read(), edit("return 1"), *[fails] * NEXT, read("/repo/c.py")]).divergence.parts
    assert parting and (parting.left.steps, parting.left.failed, parting.left.only) == (1, 0, [])
    assert (parting.right.steps, parting.right.failed, parting.right.only) == (NEXT + 2, NEXT, ["c.py"])
    assert len(parting.right.next) == NEXT and parting.right.next[0].about == "src/app.py"


def test_runs_in_folders_of_their_own_have_the_same_files() -> None:
    one = session(call("Read", path="/runs/1/src/app.py"), session_id="a")
    for other in (session(call("Read", path="/runs/2/src/app.py")), session(call("Read", path=FILE), cwd="/repo")):
        [made] = align([one, other], {})
        assert made.same == 1 and made.divergence.differs is None


def test_lines_of_a_here_document_are_those_of_an_edit_tool() -> None:
    text = "import os\nprint(os.sep)"
    tool = call("Write", path="/repo/new.py", content=text, creates=True)
    shell = call("Bash", command=f"cat > new.py <<'EOF'\n{text}\nEOF")
    assert beside([tool], [shell]).divergence.parts is None
    script = "\n".join(
        (
            "python3 - <<'EOF'",
            "from pathlib import Path",
            f"Path('new.py').write_text({text!r})",
            "print('written')",
            "EOF",
        )
    )
    assert beside([tool], [call("Bash", command=script)]).divergence.parts is None, "the script's own lines are none"
    more = call("Bash", command=f"cat > new.py <<'EOF'\n{text}\nEOF\nmake > other.py")
    assert beside([tool], [more]).divergence.parts is not None, "a file whose lines are not told is edited, too"


def test_the_reference_is_a_run_that_solved_the_task_of_median_length() -> None:
    runs = [session(*[read()] * n, session_id=f"s{n}") for n in (1, 2, 3, 9)]
    assert reference_of(runs, {}).session_id == "s2"
    solved = {"s3": {"outcome": "solved"}, "s1": {"outcome": "failed"}}
    assert reference_of(runs, solved).session_id == "s3"


def test_a_thousand_steps_take_well_under_a_second() -> None:
    drawn = random.Random(1)  # noqa: S311  (no secret)
    left, right = (steps("".join(drawn.choices("abcdefghABCDEFGH", k=1500))) for _ in range(2))
    began = time.process_time()
    divergence(align_steps(left, right))
    assert time.process_time() - began < 1


@pytest.mark.slow
def test_of_runs_too_long_the_beginnings_are_aligned_and_nothing_is_sure() -> None:
    short, long = session(read(), MEND, session_id="a"), session(read(), session_id="b")
    long.tool_calls = [replace(long.tool_calls[0], seq=n) for n in range(MOST_STEPS + 2)]
    [made] = align([short, long], {})
    assert made.left_out == (0, 2)
    assert made.divergence.parts and "too long" in made.divergence.parts.unsure


def _attempts() -> list[Session]:
    """Three at one task, the first and the last of them of one trial."""
    evil = edit("return 1 | <script>alert(1)</script>")
    made = []
    for n, (parts, reward) in enumerate(
        [([read(), evil], 0.0), ([read(), MEND, say("done")], 1.0), ([read(), MEND], 1.0)]
    ):
        run = ran(*parts, cwd="/repo", trial_id=f"t/{n % 2}", attempt_index=n // 2, reward=reward).session
        run.session_id, run.artifact_id = f"s{n}", f"a{n}"
        made.append(run)
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("align") / "store"
    store_of(folder, *_attempts())
    return folder


@pytest.mark.slow
def test_the_verb_aligns_what_is_named_a_task_or_a_trial(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*words: str) -> list[dict[str, object]]:
        made: list[dict[str, object]] = printed_json(capsys, "align", *words, "--store", store)["alignments"]
        return made

    def runs(made: list[dict[str, object]]) -> list[str]:
        return [made[0]["left"]["session_id"], *(one["right"]["session_id"] for one in made)]  # type: ignore[index]

    assert runs(asked("s0", "s2")) == ["s0", "s2"]
    assert runs(asked("--task", "task-1")) == ["s1", "s0", "s2"], "one that solved it, first"
    [retried] = asked("--trial", "t/0")
    assert runs([retried]) == ["s0", "s2"], "the first attempt, first"
    assert retried["left"]["outcome"] == "failed" and retried["right"]["outcome"] == "solved"  # type: ignore[index]
    place = retried["divergence"]["parts"]["place"]  # type: ignore[index]
    assert (place["left"], place["right"]) == (2, 2)


@pytest.mark.slow
def test_the_verb_says_it_in_words_and_as_markdown_that_does_nothing(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["align", "s0", "s1", "--store", str(store)]) == 0
    assert "they diverge at call 2 of 1 and 2 of 2; a file is changed differently" in capsys.readouterr().out
    written = printed(capsys, "align", "s0", "s1", "--store", store, "--markdown")
    assert "## 1 × 2: they diverge at call 2 of 1" in written and "<script" not in written


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [[], ["s0"], ["s0", "nobody"], ["s0", "s1", "--task", "t"], ["--task", "nothing"], ["s0"] * 51]
)
def test_the_verb_refuses_what_names_no_two_runs(
    store: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["align", *words, "--store", str(store), "--json"]) in (1, 2)
    assert json.loads(capsys.readouterr().out)["error"]["hint"]


def test_commands_on_the_page_are_commands() -> None:
    page = (Path(__file__).parents[2] / "docs" / "align.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith("agentsignals ")]
    assert len(lines) == 4
    for line in lines:
        build_parser().parse_args(shlex.split(line, comments=True)[1:])


# -- where ten real pairs part, judged by reading them before the tool was run (docs/design/alignment.md#read-by-hand)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"
Judged = tuple[int, int] | None
"""Calls of the first and the second, from 1; one more than there are: it had ended. None: never."""


class Pair(NamedTuple):
    """Two traces and where a reader has them stray and part."""

    first: str
    second: str
    strays: Judged
    parts: Judged


SWE, DEMOS = "swe-agent-swebench", "swe-agent-demos/trajectories/demonstrations"
PAIRS = (
    Pair(f"{SWE}/*/dask__dask-8685/*gpt-5*/*.traj", f"{SWE}/*/dask__dask-8685/*kimi*/*.traj", (12, 7), (12, 7)),
    Pair(f"{SWE}/*/dask__dask-8685/*gpt-5*/*.traj", f"{SWE}/*/dask__dask-8685/*qwen*/*.traj", (7, 4), (12, 15)),
    Pair(f"{SWE}/*/dask__dask-8685/*kimi*/*.traj", f"{SWE}/*/dask__dask-8685/*qwen*/*.traj", (4, 4), (12, 21)),
    Pair(f"{SWE}/*/getmoto__moto-4799/*gpt-5*/*.traj", f"{SWE}/*/getmoto__moto-4799/*kimi*/*.traj", (5, 4), (13, 12)),
    Pair(f"{SWE}/*/*monai-5416/*kimi*/*.traj", f"{SWE}/*/*monai-5416/*qwen*/*.traj", (7, 6), (9, 9)),
    Pair(f"{SWE}/*/getmoto__moto-5862/*kimi*/*.traj", f"{SWE}/*/getmoto__moto-5862/*qwen*/*.traj", (13, 17), (13, 17)),
    Pair(f"{DEMOS}/*default__*from_source/*.traj", f"{DEMOS}/*calling_replace_from_source/*.traj", (10, 10), None),
    Pair(f"{DEMOS}/*default__*from_source/*.traj", f"{DEMOS}/*default_sys-env_window100*/*.traj", (2, 1), None),
    Pair("trail/data/81d7ec04*.json", "trail/data/da17836a*.json", (3, 3), None),
    Pair("trail/data/f12834d0*.json", "trail/data/fdaf88f3*.json", (8, 8), (8, 8)),
)


@pytest.mark.slow
def test_it_parts_where_a_reader_says(tmp_path: Path) -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real traces is not here")
    corpus = CORPUS.resolve()
    paths = {pattern: path for pair in PAIRS for pattern in pair[:2] for path in corpus.glob(pattern)}
    pipeline.ingest(sorted(set(map(str, paths.values()))), tmp_path / "store", jobs=1)
    store = Store(tmp_path / "store")
    sessions = {s.artifact_id: s for s in map(store.session, store.manifest.sessions)}
    read = {pattern: sessions[artifact_id(str(path))] for pattern, path in paths.items()}
    strays, parts = [], []
    for pair in PAIRS:
        [made] = align([read[pair.first], read[pair.second]], {})
        apart = made.divergence
        strays.append(_off(pair.strays, apart.strays))
        parts.append(_off(pair.parts, apart.parts and apart.parts.place))
    assert [parts.count(0), sum(off <= 2 for off in parts)] == [8, 10]
    assert [strays.count(0), sum(off <= 2 for off in strays)] == [4, 7]


def _off(judged: Judged, place: Place | None) -> int:
    """By how many calls the two are apart, on the side where that is more."""
    if judged is None or place is None:
        return 0 if judged is place else 99
    return max(abs(judged[0] - place.left), abs(judged[1] - place.right))
