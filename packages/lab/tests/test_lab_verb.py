"""`lab` on the command line: loops on a server or a model, reports, comparisons, other evaluators, refusals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from agentsignals import cli, private_files
from agentsignals.cli import main
from agentsignals.errors import LabError

from agentsignals_lab import coding_tasks
from agentsignals_lab.coding_tasks import chosen_tasks
from agentsignals_lab.conditions import BASELINE, read_conditions
from agentsignals_lab.retry_loop import AttemptRow, EpisodeRow
from agentsignals_lab.retry_runs import Asked, begin, prepared
from agentsignals_lab.runs import Run
from agentsignals_lab.served_model import Served
from tests import tiny_world
from tests.conftest import Server, said
from tests.test_retry import fenced

ROOT = Path(__file__).parents[1]
TINY = ROOT / "src" / "agentsignals_lab" / "sample_study" / "model"
TASK = coding_tasks.task("parse_duration")
WRONG = fenced("def parse_duration(text):\n    return 1 if text else 2\n")


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    code = main(["lab", *map(str, arguments), "--json", "--quiet"])
    told = capsys.readouterr()
    assert code == 0, told
    return json.loads(told.out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    code = main(["lab", *map(str, arguments), "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert code == (2 if error["kind"] == "usage" else 1)
    return error["kind"], error["message"]


def answers(*texts: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The n-th attempt of every episode gets the n-th text."""
    return lambda body: said(texts[sum(m["role"] == "assistant" for m in body["messages"])])


def agent(capsys: pytest.CaptureFixture[str], server: Server, out: Path, *more: object) -> Any:
    given = ("--server", server.url, "--server-model", "m", "--tasks", "parse_duration", "--attempts", 2, "--out", out)
    return ask(capsys, "agent", *given, *more)


def test_what_there_is_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(capsys, "list", "--tasks", "times")
    assert set(found) == {"experiments", "families", "tones", "sandbox", "not_installed", "tasks"}
    assert found["families"]["times"] == len(found["tasks"])
    assert "parse_duration@1" in found["tasks"]
    assert main(["lab", "--json", "list", "--tasks", "times"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main(["lab", "list"]) == 0
    assert "question" in capsys.readouterr().out


def test_a_study_to_begin_with_is_written_whole_and_over_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its commands do stands in test_own_experiment; here, that nothing they name is missing."""
    made = ask(capsys, "new", tmp_path / "mine")
    assert {"README.md", "tasks.jsonl", "texts.toml", "setting.toml", "model/model.safetensors"} <= set(made["files"])
    readme = (tmp_path / "mine" / "README.md").read_text()
    words = {word for line in readme.splitlines() if line.startswith("agentsignals lab") for word in line.split()}
    files = {word for word in words if word.endswith((".toml", ".jsonl")) or word == "model"}
    assert files and all((tmp_path / "mine" / name).exists() for name in files)
    monkeypatch.chdir(tmp_path / "mine")
    assert len(ask(capsys, "list", "--tasks", "tasks.jsonl")["tasks"]) == 10
    assert refused(capsys, "new", tmp_path / "mine")[0] != "usage"
    (tmp_path / "empty").mkdir()
    assert ask(capsys, "new", tmp_path / "empty")["files"] == made["files"]


def test_a_run_is_its_owners_alone(
    capsys: pytest.CaptureFixture[str], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the umask, also without the one that only a program may set."""
    monkeypatch.setattr(cli, "owner_only", contextlib.nullcontext)
    server.says = answers(fenced(TASK.reference))
    before = os.umask(0)
    try:
        agent(capsys, server, tmp_path / "run", "--samples", 1)
    finally:
        os.umask(before)
    assert (tmp_path / "run").is_dir()
    assert not list(private_files.exposed_below(tmp_path / "run"))


@pytest.mark.slow
def test_a_loop_on_a_server_is_told_kept_and_not_asked_twice(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    tmp_path: Path,
) -> None:
    server.says = answers(WRONG, fenced(TASK.reference))
    (tmp_path / "c.toml").write_text('[[condition]]\nname = "calm words"\ntone = "calm"\n')
    more = ("--conditions", tmp_path / "c.toml", "--samples", 2)
    found = agent(capsys, server, tmp_path / "run", *more)
    assert (found["episodes"], found["new"]) == (4, 4)
    assert [(c["condition"], c["full_pass"], c["failed_first"], c["recovered"]) for c in found["conditions"]] == [
        ("baseline", 1.0, 2, 2), ("calm words", 1.0, 2, 2),
    ]  # fmt: skip
    rows = Run.read(tmp_path / "run").table("attempts", AttemptRow).rows
    assert {(row.prompt_tokens, row.tokens) for row in rows} == {(12, 3)}
    asked = len(server.bodies)
    assert asked == 8
    assert {body["seed"] for body in server.bodies} == {row.seed for row in rows}
    again = agent(capsys, server, tmp_path / "run", *more)
    assert (again["episodes"], again["new"], len(server.bodies)) == (4, 0, asked)
    assert main(["lab", "agent", "--server", server.url, "--server-model", "m", "--tasks", "parse_duration",
                 "--attempts", "2", "--out", str(tmp_path / "run"), *map(str, more)]) == 0  # fmt: skip
    told = capsys.readouterr()
    assert "4, 0 of them new" in told.out
    assert "100.0%" in told.out


def test_a_server_that_fails_half_way_leaves_what_is_done(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    tmp_path: Path,
) -> None:
    right = fenced(TASK.reference)
    calm = tmp_path / "c.toml"
    calm.write_text('[[condition]]\nname = "calm"\ntone = "calm"\n')
    server.says = lambda body: 401 if "no hurry" in body["messages"][0]["content"] else said(right)
    given = ("--server", server.url, "--server-model", "m", "--tasks", "parse_duration", "--conditions", calm)
    kind, message = refused(capsys, "agent", *given, "--out", tmp_path / "run")
    assert (kind, "refused: HTTP 401" in message) == ("lab", True)
    rows = Run.read(tmp_path / "run").table("episodes", EpisodeRow).rows
    assert [row.condition for row in rows] == ["baseline"]
    server.says = lambda body: said(right)
    assert ask(capsys, "agent", *given, "--out", tmp_path / "run")["new"] == 1


def test_the_same_folder_takes_no_other_settings(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    tmp_path: Path,
) -> None:
    server.says = answers(fenced(TASK.reference))
    agent(capsys, server, tmp_path / "run")
    given = ("--server", server.url, "--tasks", "parse_duration", "--attempts", 2, "--out", tmp_path / "run")
    assert "another model" in refused(capsys, "agent", *given, "--server-model", "other")[1]
    assert "other settings" in refused(capsys, "agent", *given, "--server-model", "m", "--samples", 3)[1]
    assert "another seed" in refused(capsys, "agent", *given, "--server-model", "m", "--seed", 14)[1]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ((), "usage", "--model or --server"),
        (("--model", "x", "--server", "y"), "usage", "either --model"),
        (("--server", "http://127.0.0.1:9/v1"), "usage", "needs --server-model"),
        (
            ("--server", "http://127.0.0.1:9/v1", "--server-model", "m", "--directions", "d.npz"),
            "usage",
            "does not return",
        ),
        (("--server", "ftp://x", "--server-model", "m"), "usage", "not the URL of a chat server"),
        (("--server", "http://127.0.0.1:9/v1", "--server-model", "m", "--tasks", "nothing"), "lab", "nothing"),
        (("--server", "http://127.0.0.1:9/v1", "--server-model", "m", "--variants", "odd"), "lab", "no variant"),
        (("--server", "http://127.0.0.1:9/v1", "--server-model", "m", "--samples", "0"), "lab", "No samples"),
        (("--server", "http://127.0.0.1:9/v1", "--server-model", "m", "--conditions", "no.toml"), "lab", "no.toml"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_made(
    arguments: tuple[str, ...], kind: str, says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found, message = refused(capsys, "agent", *arguments, "--out", tmp_path / "run")
    assert (found, says in message) == (kind, True), message
    assert not (tmp_path / "run").exists()


def test_a_task_whose_own_reference_fails_is_not_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, server: Server
) -> None:
    twice = {"id": "twice", "says": "Double.", "signature": "twice(n)", "visible": ["twice(1) == 2"],
             "hidden": ["twice(3) == 6"], "reference": "def twice(n):\n    return n + 1\n"}  # fmt: skip
    (tmp_path / "own.jsonl").write_text(json.dumps(twice))
    given = ("--server", server.url, "--server-model", "m", "--attempts", 1, "--out", tmp_path / "run")
    kind, message = refused(capsys, "agent", *given, "--tasks", tmp_path / "own.jsonl")
    assert (kind, "fails its own cases: expected 6, got 4" in message) == ("lab", True), message
    assert not (tmp_path / "run").exists()
    rows = [
        {"task_id": n, "text": "Double.", "code": f"def twice(n):\n    return {code}",
         "test_list": ["assert twice(1) == 2", "assert twice(3) == 6"]}
        for n, code in ((1, "n + 1"), (2, "2 * n"))
    ]  # fmt: skip
    server.says = answers(fenced("def twice(n):\n    return 2 * n\n"))
    (tmp_path / "mbpp.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["lab", "agent", *map(str, given), "--tasks", str(tmp_path / "mbpp.jsonl")]) == 0
    assert "1 task left out" in capsys.readouterr().err
    rows_of_run = Run.read(tmp_path / "run").table("episodes", EpisodeRow).rows
    assert [(row.task, row.full_pass) for row in rows_of_run] == [("mbpp/2@1", True)]
    (tmp_path / "mbpp.jsonl").write_text(json.dumps(rows[0]))
    assert "No task is left" in refused(capsys, "agent", *given, "--tasks", tmp_path / "mbpp.jsonl")[1]


def test_a_model_without_a_chat_template_is_asked_once_at_most(tmp_path: Path) -> None:
    card = {"name": "base", "has_chat_template": False}
    with pytest.raises(LabError, match="no chat template"):
        begin(tmp_path / "run", prepared(Asked(tasks="parse_duration")), card)
    assert not (tmp_path / "run").exists()
    with begin(tmp_path / "run", prepared(Asked(tasks="parse_duration", attempts=1)), card).run:
        pass


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (("report", "."), "lab", "holds no run"),
        (("run", "nothing", "--model", "x", "--out", "r"), "lab", "no experiment 'nothing'"),
        (("run", "directions", "--out", "r"), "usage", "needs --model"),
        ((), "usage", "VERB"),
        (("dance",), "usage", "dance"),
    ],
)
def test_other_words_that_fit_nothing_are_refused(
    arguments: tuple[str, ...],
    kind: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    found, message = refused(capsys, *arguments)
    assert (found, says in message) == (kind, True), message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[condition]]\nname = 'a'\n[[condition]]\nname = 'a'\n", "two conditions called 'a'"),
        ("[[condition]]\nname = 'a'\ndoes = 1\n", "unknown field `does`"),
        ("[[condition]]\ndose = 1\n", "can't be read"),
        ("[[condition]]\nname = 'a'\nwhere = 'nowhere'\n", "can't be read"),
        ("[[condition]]\nname = ' '\n", "can't have the name"),
        (f"[[condition]]\nname = '{'a' * 81}'\n", "can't have the name"),
        ('[[condition]]\nname = "a\\u001b[2J"\n', "can't have the name"),
        ("conditions = 1\n", "can't be read"),
        ("[[condition]\n", "can't be read"),
        ("condition = ['a']\n", "can't be read"),
    ],
)
def test_conditions_that_say_nothing_clear_are_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(LabError, match=says):
        read_conditions(tmp_path / "c.toml")


def test_the_baseline_is_always_there_and_comes_first(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[[condition]]\nname = 'up'\ndirection = 'calm'\ndose = 0.1\nlayers = [1, 2]\n")
    first, second = read_conditions(tmp_path / "c.toml").conditions
    assert (first, second.layers, second.steers) == (BASELINE, (1, 2), True)
    (tmp_path / "c.toml").write_text("[[condition]]\nname = 'up'\n[[condition]]\nname = 'baseline'\ntone = 'calm'\n")
    assert [one.name for one in read_conditions(tmp_path / "c.toml").conditions] == ["up", "baseline"]
    assert read_conditions(None).conditions == (BASELINE,)


def test_a_server_is_not_steered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[[condition]]\nname = 'up'\ndirection = 'calm'\ndose = 0.1\nlayers = [1]\n")
    given = ("--server", "http://127.0.0.1:9/v1", "--server-model", "m", "--conditions", tmp_path / "c.toml")
    kind, message = refused(capsys, "agent", *given, "--out", tmp_path / "run")
    assert (kind, "no directions came" in message) == ("lab", True), message
    assert not (tmp_path / "run").exists()


def test_of_a_file_that_steers_a_server_is_asked_the_conditions_that_are_named(
    capsys: pytest.CaptureFixture[str], server: Server, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(
        "[[condition]]\nname = 'calm words'\ntone = 'calm'\n"
        "[[condition]]\nname = 'up'\ndirection = 'calm'\ndose = 0.1\nlayers = [1]\n"
        "[[condition]]\nname = 'honest words'\ntone = 'honest'\n"
    )
    server.says = answers(fenced(TASK.reference))
    given = ("--conditions", tmp_path / "c.toml")
    at = ("--server", server.url, "--server-model", "m", "--tasks", "parse_duration", *given, "--out", tmp_path / "no")
    assert main(["lab", "agent", *map(str, at)]) == 1
    assert "--condition 'calm words' --condition 'honest words'" in capsys.readouterr().err
    assert not server.bodies
    found = agent(capsys, server, tmp_path / "run", *given, "--condition", "calm words")
    assert [row["condition"] for row in found["conditions"]] == ["baseline", "calm words"]
    kind, message = refused(capsys, "agent", *at, "--condition", "cold words")
    assert (kind, "no condition 'cold words'" in message) == ("lab", True), message


def test_tasks_are_named_by_name_key_family_or_count() -> None:
    assert [one.key for one in chosen_tasks("parse_duration")] == ["parse_duration@1"]
    assert [one.key for one in chosen_tasks("parse_duration@1+one_off")] == ["parse_duration@1+one_off"]
    assert [one.key for one in chosen_tasks("parse_duration", ("plain", "conflicting"))] == [
        "parse_duration@1", "parse_duration@1+conflicting",
    ]  # fmt: skip
    assert {one.family for one in chosen_tasks("times,grids")} == {"times", "grids"}
    assert len(chosen_tasks("all")) == len(coding_tasks.tasks())
    assert len(chosen_tasks("published")) == len(coding_tasks.PUBLISHED)


def test_what_an_address_holds_of_a_person_is_not_kept() -> None:
    card = Served("http://me:secret@127.0.0.1:8000/v1", "m").card
    assert card == {"name": "m", "server": "http://127.0.0.1:8000/v1"}


@pytest.mark.slow
def test_words_of_models_do_nothing_on_the_page(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    tmp_path: Path,
) -> None:
    evil = "<script>alert(1)</script>"
    server.says = answers(f"{evil} |\n# no\n", f"{evil}")
    (tmp_path / "c.toml").write_text(f'[[condition]]\nname = "{evil}|x"\n')
    given = ("--server", server.url, "--server-model", evil, "--tasks", "parse_duration", "--attempts", 2)
    ask(capsys, "agent", *given, "--conditions", tmp_path / "c.toml", "--out", tmp_path / "run")
    found = ask(capsys, "report", tmp_path / "run")
    assert found["written"] == [str(tmp_path / "run" / "report.html"), str(tmp_path / "run" / "report.md")]
    page, text = ((tmp_path / "run" / f"report.{form}").read_text("utf-8") for form in ("html", "md"))
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src &#39;none&#39;" in page
    assert not any(line.count("<script>") for line in text.splitlines() if "`" not in line)
    assert "## Limits" in text


def test_reports_are_written_where_they_are_asked_for(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    tmp_path: Path,
) -> None:
    server.says = answers(fenced(TASK.reference))
    agent(capsys, server, tmp_path / "run")
    ask(capsys, "report", tmp_path / "run", "-o", tmp_path / "a.json")
    made = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert made["about"] == "Retry loop of m"
    assert [section["study"] for section in made["sections"]] == ["conditions", "against", "attempts", "ground"]
    assert "ends in '.pdf'" in refused(capsys, "report", tmp_path / "run", "-o", tmp_path / "a.pdf")[1]
    assert "Cannot write the report" in refused(capsys, "report", tmp_path / "run", "-o", tmp_path / "no" / "a.md")[1]


# -- on a model ------------------------------------------------------------------------------------------------------

torch_only = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("transformers")), reason="needs torch and transformers (extra lab)"
)


def command(out: Path, *more: str) -> list[str]:
    tasks = tiny_world.tasks_file(out.parent / "tasks.jsonl", 20)
    given = ("--model", str(TINY), "--tasks", str(tasks), "--temperature", "1")
    return [sys.executable, "-m", "agentsignals", "lab", "agent", *given, "--max-new-tokens", "24", "--attempts", "2",
            "--device", "cpu", "--out", str(out), *more]  # fmt: skip


def content(folder: Path) -> tuple[list[Any], list[Any]]:
    run = Run.read(folder)
    untimed = ("wall_time_s", "logprob_sum")
    rows = run.table("attempts", AttemptRow).rows
    attempts = [[getattr(row, name) for name in row.__struct_fields__ if name not in untimed] for row in rows]
    return attempts, list(run.table("episodes", EpisodeRow).rows)


@pytest.mark.torch
@torch_only
def test_directions_are_made_and_a_loop_is_steered_along_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "e.toml").write_text("[setting]\ntasks = 6\n")
    on = ("--model", TINY, "--device", "cpu")
    ask(capsys, "run", "directions", "--config", tmp_path / "e.toml", *on, "--out", tmp_path / "directions")
    ask(capsys, "report", tmp_path / "directions")
    assert "Directions of " in (tmp_path / "directions" / "report.md").read_text("utf-8")
    (tmp_path / "c.toml").write_text(
        '[[condition]]\nname = "up"\ndirection = "desperate"\ndose = 0.5\nlayers = [1]\n'
        'where = "feedback"\nrandoms = 2\n' + tiny_world.tones()
    )
    made = tmp_path / "directions" / "directions-grand_mean.npz"
    given = ("--tasks", tiny_world.tasks_file(tmp_path / "t.jsonl", 3), "--max-new-tokens", 16, "--attempts", 1)
    more = ("--conditions", tmp_path / "c.toml", "--directions", made)
    found = ask(capsys, "agent", *on, *given, *more, "--out", tmp_path / "run")
    assert [c["condition"] for c in found["conditions"]] == ["baseline", "up"]
    ask(capsys, "report", tmp_path / "run", "-o", tmp_path / "r.json")
    sections = json.loads((tmp_path / "r.json").read_text("utf-8"))["sections"]
    assert [s["study"] for s in sections] == [
        "conditions", "against", "attempts", "projections", "manipulation", "ground",
    ]  # fmt: skip
    rows = {t["id"]: [next(iter(row.values())) for row in t["rows"]] for s in sections for t in s["tables"]}
    assert set(rows["lab.against"]) == set(rows["lab.manipulation"]) == {"up"}, "random directions are controls"
    assert {row.condition for row in Run.read(tmp_path / "run").table("episodes", EpisodeRow).rows} == {
        "baseline", "up", "up, random:1", "up, random:2",
    }  # fmt: skip
    kind, message = refused(capsys, "agent", *on, *given, *more[:2], "--out", tmp_path / "other")
    assert (kind, "no directions came" in message) == ("lab", True), message
    assert not (tmp_path / "other").exists()


@pytest.mark.torch
@torch_only
def test_a_loop_on_a_model_is_interrupted_goes_on_and_is_read_as_attempts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text('[[condition]]\nname = "desperate"\ntone = "desperate"\n'
                                     '[[condition]]\nname = "baseline"\ntone = "neutral"\n'
                                     + tiny_world.tones())  # fmt: skip
    more = ("--conditions", str(tmp_path / "c.toml"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    rows_file = tmp_path / "cut" / "rows" / "episodes.jsonl"
    with subprocess.Popen(command(tmp_path / "cut", *more), stderr=subprocess.PIPE, text=True, env=environment) as work:
        until = time.monotonic() + 240
        while not (rows_file.exists() and rows_file.read_bytes().count(b"\n")) and time.monotonic() < until:
            time.sleep(0.02)
        work.send_signal(signal.SIGINT)
        assert work.stderr is not None
        told = work.stderr.read()
        assert work.wait() == 130, told
    assert "interrupted; finished work is kept" in told
    assert 0 < len(Run.read(tmp_path / "cut").table("episodes", EpisodeRow).rows) < 40
    for folder in ("cut", "whole"):
        subprocess.run(command(tmp_path / folder, *more), check=True, env=environment, capture_output=True, timeout=300)
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert main(["analyze", str(tmp_path / "cut"), "--store", str(tmp_path / "store"), "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == len(content(tmp_path / "cut")[0])
