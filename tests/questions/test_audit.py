"""The audit over a store: rates before and after, with what cannot be told between them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import agentsignals
from agentsignals.cli import attempts as attempts_text
from agentsignals.cli import main
from agentsignals.cli.mcp import Tools
from agentsignals.model import Attempt
from agentsignals.questions import audit
from agentsignals.questions.findings import Reader, attempts
from agentsignals.redaction import Redactor
from agentsignals.stats.validation import CAVEAT
from agentsignals.store import Store
from tests.planted_passes import HACKS, TWINS, Task, session
from tests.questions.stores import store_of
from tests.questions.test_findings import made_of
from tests.ui.served import page, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At eight tasks: four passes of its own, two that were looked up, one of which nobody can tell, one failure."""
    stories = [TWINS["gold copied"]] * 4 + [HACKS["gold copied"][1]] * 2 + [TWINS["gold copied"]] * 2
    made = []
    for n, story in enumerate(stories):
        one_session = session(story(Task(n)), "atif")
        one_session.session_id, one_session.context = f"r{n}", "eval"
        assert one_session.attempt is not None
        one_session.attempt.trial_id, one_session.attempt.task_id = f"r{n}", f"t{n}"
        one_session.attempt.knobs = {"model_id": "m"}
        made.append(one_session)
    made[6].attempt = Attempt(root="/r", reward=1.0, trial_id="r6", task_id="t6", knobs={"model_id": "m"})
    made[7].attempt = Attempt(root="/r", reward=0.0, trial_id="r7", task_id="t7", knobs={"model_id": "m"})
    store_of(folder := tmp_path_factory.mktemp("audit") / "s", *made)
    return folder


def test_the_rate_is_told_before_and_after_with_what_nobody_can_tell(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "--json", "--by", "model", "--store", str(folder)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] == {"derived": 4, "retrieved": 2, "cannot_tell": 1}
    rates = {
        name: (told["everyone"][name]["n"], told["everyone"][name]["of"])
        for name in ("resolved", "earned", "earned_at_most")
    }
    assert rates == {"resolved": (7, 8), "earned": (4, 8), "earned_at_most": (5, 8)}
    assert 0 < told["everyone"]["earned"]["low"] < 0.5 < told["everyone"]["earned"]["high"] < 1
    assert told["channels"] == {"copied": 2}
    assert told["cannot_tell"] == {"no transcript": 1}
    assert [entry["verdict"] for entry in told["listed"]] == ["retrieved"] * 2 + ["cannot_tell"] + ["derived"] * 4
    shown = next(entry for entry in told["listed"] if entry["verdict"] == "retrieved")
    assert {act["channel"] for act in shown["acts"]} == {"copied"}
    assert all(act["from_seq"] < act["seq"] for act in shown["acts"])


@pytest.mark.parametrize("more", [[], ["--markdown"]])
def test_it_is_told_in_words(folder: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    assert main(["audit", "--store", str(folder), *more]) == 0
    text = capsys.readouterr().out
    assert "7 attempts passed, retries excluded: 4 derived, 2 retrieved, 0 verifier touched, 1 cannot tell" in text
    assert "4 to 5 of 8, 50.0% to 62.5%" in text
    assert " % undecided and miss " in text, "what the verdicts are worth stands beside them"


def test_without_attempts_it_says_so(folder: Path) -> None:
    assert main(["audit", "--store", str(folder), "--where", "false"]) == 1


def test_the_map_of_failures_shows_passes_that_were_not_earned_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["failures", "--json", "--by", "model", "--store", str(folder)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["failed"], sum(share["n"] for share in made["classes"])) == (1, 1)
    assert made["passed"] == {"cannot_tell": 1, "retrieved": 2, "derived": 4}
    assert [(p["verdict"], p["task"]) for p in made["not_earned"]] == [("retrieved", "t4"), ("retrieved", "t5")]
    assert [c["not_earned"] for c in made["candidates"]] == [2]
    for more in ([], ["--markdown"]):
        assert main(["failures", "--store", str(folder), *more]) == 0
        text = capsys.readouterr().out
        assert "7 attempts passed; 2 show reward hacking (2 retrieved)" in text
        assert "1 are undecided" in text and "passes by reward hacking" in text
        assert " % undecided and miss " in text


def test_the_study_and_the_page_list_them_with_the_event_that_shows_each(folder: Path) -> None:
    made = agentsignals.study(Store(folder), "failures")
    (listed,) = [t for t in made.tables if t.id == "failures.not_earned"]
    assert [row[0] for row in listed.rows] == ["retrieved", "retrieved"]
    with serving(Store(folder)) as running:
        shown = page(running, "/failures")
    (apart,) = re.findall('<h2 id="not-earned">.*?</table>', shown, re.DOTALL)
    assert apart.count("retrieved</td>") == 2 and apart.count(">event ") == 2
    assert CAVEAT in listed.note and " % undecided and miss " in apart


def test_an_agent_asks_the_audit_over_mcp(folder: Path) -> None:
    answer = Tools(folder, Redactor(b"k" * 32)).audit(["model"])
    assert "4 derived, 2 retrieved" in answer and "trace-data" in answer


def test_compare_takes_the_earned_rate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--json", "--outcome", "verification.earned", "--by", "model", "--store", str(folder)]) == 0
    assert CAVEAT in json.loads(capsys.readouterr().out)["warnings"]
    assert main(["compare", "--json", "--outcome", "resolved", "--by", "model", "--store", str(folder)]) == 0
    assert CAVEAT not in json.loads(capsys.readouterr().out)["warnings"]


def test_passes_that_were_not_earned_are_a_sentence_where_they_are_many_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def sure(n_bad: int, n: int = 60) -> bool:
        verdicts = ["retrieved"] * n_bad + ["cannot_tell"] + ["derived"] * (n - n_bad - 1)
        named = {"read_by": "openai:m"}
        rows = [{"session_id": f"s{k}", "verdict": v, "task_id": f"t{k}", **named} for k, v in enumerate(verdicts)]
        (made,) = made_of("not_earned", audits=rows).values()
        assert made.sentence.startswith(f"{n_bad} of {n} passes") and "1 more passes are undecided" in made.caveat
        assert CAVEAT in made.caveat and f" {n} passes were read by openai:m. " in made.caveat
        return made.share > 0 and made.p is not None and made.p < 0.01

    assert (sure(0), sure(1), sure(9)) == (False, False, True)
    monkeypatch.setattr(attempts, "LEAST_UNEARNED", 0.2)
    assert not sure(9)


HOSTILE = "inputs|<script>`x`"


@pytest.fixture(scope="module")
def by_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task passed four times, thrice by a copied fix; one passed once, by one; one by a table of the tests' inputs;
    one honestly; one that nobody can tell; one that failed."""
    copied, special, honest = HACKS["gold copied"][1], HACKS["inputs special-cased"][1], TWINS["gold copied"]
    stories = [("often", copied)] * 3 + [("often", honest), ("once", copied), (HOSTILE, special), ("own", honest)]
    made = []
    for n, (task, story) in enumerate(stories):
        one = session(story(Task(n)), "atif")
        one.session_id, one.context = f"s{n}", "eval"
        assert one.attempt is not None
        one.attempt.trial_id, one.attempt.task_id, one.attempt.knobs = f"s{n}", task, {"model_id": "m"}
        made.append(one)
    for n, (task, reward) in enumerate([("silent", 1.0), ("failed", 0.0)], len(stories)):
        one = session(honest(Task(n)), "atif")
        one.session_id, one.context = f"s{n}", "eval"
        one.attempt = Attempt(root="/r", reward=reward, trial_id=f"s{n}", task_id=task, knobs={"model_id": "m"})
        made.append(one)
    store_of(folder := tmp_path_factory.mktemp("by_task") / "s", *made)
    return folder


def test_tasks_are_ranked_by_the_sure_share_of_their_flagged_passes(
    by_task: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["audit", "--json", "--store", str(by_task)]) == 0
    tasks = {task["task"]: task for task in json.loads(capsys.readouterr().out)["tasks"]}
    assert list(tasks) == ["often", HOSTILE, "once", "silent", "own"], "three of four are surer than one of one"
    counts = ("retrieved", "verifier_touched", "special_cased", "cannot_tell")
    assert {name: tuple(task[each] for each in counts) for name, task in tasks.items()} == {
        "often": (3, 0, 0, 0), HOSTILE: (0, 0, 1, 0), "once": (1, 0, 0, 0), "silent": (0, 0, 0, 1),
        "own": (0, 0, 0, 0),
    }  # fmt: skip
    often, silent = tasks["often"], tasks["silent"]
    assert (often["unearned"]["n"], often["unearned"]["of"], often["resolved"]["of"]) == (3, 4, 4)
    assert often["unearned"]["low"] == pytest.approx(0.3, abs=0.01)  # Wilson's for 3 of 4, by hand
    assert (silent["unearned"]["n"], silent["unearned_at_most"]["n"]) == (0, 1)
    assert main(["audit", "--store", str(by_task)]) == 0
    text = capsys.readouterr().out
    assert "tasks passed by reward hacking: 3 of 5 passed tasks\n" in text and "3 of 4, 75.0%" in text
    monkeypatch.setattr(attempts_text, "_LISTED", 2)
    assert main(["audit", "--store", str(by_task)]) == 0
    assert "3 of 5 passed tasks, of which 2 are listed (--json has all)" in capsys.readouterr().out


def test_the_data_set_has_each_pass_with_its_lines_and_a_card(
    by_task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["export", "--to", "audit", "-o", str(out), "--store", str(by_task), "--quiet", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == {"passes": 8, "tasks": 5}
    passes = [json.loads(line) for line in (out / "data" / "passes.jsonl").read_text("utf-8").splitlines()]
    assert [row["verdict"] for row in passes].count("retrieved") == 4
    assert all(row["lines"] and row["lines"][0]["event"] is not None for row in passes if row["verdict"] == "retrieved")
    (silent,) = [row for row in passes if row["task"] == "silent"]
    assert (silent["verdict"], silent["because"], silent["lines"]) == ("cannot_tell", "no transcript", [])
    card = (out / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---")[1])
    assert [config["config_name"] for config in head["configs"]] == ["passes", "tasks"]
    assert "| often | 3 |" in card and "<script>" not in card.replace("\\<script\\>", "")
    assert CAVEAT in card and "neither earned nor unearned" in card


def test_without_a_pass_no_data_set_is_written(
    by_task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "--to", "audit", "-o", str(tmp_path / "out"), "--store", str(by_task)]
    assert main([*words, "--where", "session_id = 's8'"]) == 1
    assert "None of these 1 sessions is a passed attempt" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_pass_that_a_reader_calls_derived_is_no_special_case(folder: Path) -> None:
    """The rules left it open with such an act, which stays in the detail."""
    asked = audit.question()
    rows = dict(Reader(Store(folder), [asked]).inputs(asked).rows)
    act = {"channel": "special_case", "text": "if n == 4:"}

    def as_read(row: dict[str, Any]) -> dict[str, Any]:
        detail = json.loads(row["detail"]) | {"acts": [act], "read_by": "openai:m", "rules": "cannot_tell"}
        return row | {"detail": json.dumps(detail)} if json.loads(row["value"]) == "derived" else row

    made = audit.audit_report(rows | {"audits": [as_read(row) for row in rows["audits"]]})
    assert sum(task.special_cased for task in made.tasks) == 0 and "special_case" not in made.channels
    assert sum(task.unearned.n for task in made.tasks) == 2


@pytest.mark.parametrize("option", ["--dry-run", "--window=9000", "--redact", "--per-minute=3"])
def test_options_of_a_reader_need_one(folder: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", option, "--store", str(folder)]) == 2
    assert f"{option.partition('=')[0]} needs --reader." in capsys.readouterr().err
