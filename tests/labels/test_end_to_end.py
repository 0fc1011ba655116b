"""The verb as a person meets it, against a real server: killed half-way, under faults, without a network."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentsignals.cli import main
from agentsignals.labels.tasks import Case, task, tasks
from agentsignals.model import Absent
from agentsignals.network import LOCAL_NOTICE, MASKED_NOTICE
from agentsignals.store import Store
from agentsignals.store.query import rows
from tests.labels.server import Fault, Server, label, masked, material
from tests.labels.stores import session_id, store_of
from tests.verbs import printed, printed_json

MESSAGES = 1_000


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a thousand different messages in twenty sessions."""
    folder = tmp_path_factory.mktemp("thousand")
    each = MESSAGES // 20
    return store_of(folder, *[[f"message {n * each + m}" for m in range(each)] for n in range(20)]).folder


@pytest.fixture(scope="module")
def one_message(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("one"), ["one"]).folder


@pytest.fixture
def store(thousand: Path, tmp_path: Path) -> Path:
    """A fresh copy of it."""
    return Path(shutil.copytree(thousand, tmp_path / "store"))


def command(store: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "agentsignals", "label", *map(str, arguments), "--store", str(store), "--json"]


def start(store: Path, *arguments: object) -> subprocess.Popen[bytes]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI")}
    return subprocess.Popen(command(store, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean)


def finished(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def labelled(store: Path, name: str = "sentiment") -> int:
    return int(rows(Store(store), f"SELECT count(*) FROM labels WHERE task = '{name}'")[1][0][0])


def wait_for(answered: Server, n: int) -> None:
    until = time.monotonic() + 60
    while len(answered.answered) < n:
        assert time.monotonic() < until, f"{len(answered.answered)} answered"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_thousand_messages_by_masked_random_choice_killed_half_way(store: Path, server: Server) -> None:
    """A model without any sense under llguidance's masks: every answer follows the schema, none is refused; a run that
    was killed asks for no finished answer again."""
    pytest.importorskip("llguidance", reason="llguidance is not installed (extra dev)")
    server.answers = masked(seed=7)
    by = f"openai:tiny@{server.url}"
    process = start(store, "sentiment", "--by", by, "--concurrency", 4, "--quiet")
    wait_for(server, MESSAGES // 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(0.3)
    before = dict(server.answered)
    assert MESSAGES // 3 <= len(before) < MESSAGES
    summary = finished(start(store, "sentiment", "--by", by, "--concurrency", 4))
    assert summary["failed"] == {} and summary["labelled"] == MESSAGES == labelled(store)
    assert summary["loosely_parsed"] == 0
    assert summary["told"].get("invalid_answer", 0) == 0
    # Only answers that were under way when it was killed may have been asked for again: one a thread.
    again = [text for text, n in before.items() if server.answered[text] > n and not _was_cut(server, text)]
    assert len(again) <= 4
    found = rows(Store(store), "SELECT value, count(*) FROM labels GROUP BY 1")[1]
    assert {value for value, _ in found} == {"POSITIVE", "NEUTRAL", "NEGATIVE"}


def _was_cut(server: Server, text: str) -> bool:
    """Whether an answer did not fit its tokens, so that more were given: a call that bore no answer."""
    return any(r["max_tokens"] > 400 for r in server.requests if material(r) == text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["session_success", "instruction_adherence", "persona", "goal_alignment_at_close"])
def test_every_schema_is_one_that_masks_can_hold(name: str) -> None:
    """Fifty random answers each: valid by jsonschema; what is refused is refused for what it says, not its shape."""
    pytest.importorskip("llguidance", reason="llguidance is not installed (extra dev)")
    answer = masked(seed=11)
    body = {"response_format": {"json_schema": {"schema": task(name).schema}}, "max_tokens": 100_000}
    for _ in range(50):
        text = answer(body)
        jsonschema.validate(json.loads(text), task(name).schema)
        if name in ("session_success", "persona"):
            assert not isinstance(task(name).verdict(text, Case(1)), Absent)


@pytest.mark.slow
def test_too_small_a_budget_is_reported_as_failures(tmp_path: Path, server: Server) -> None:
    """design/labels.md#answers-by-schema: where the budget is smaller than the answer, everything is cut. No label is
    made of that."""
    pytest.importorskip("llguidance", reason="llguidance is not installed (extra dev)")
    answer = masked(seed=3)
    server.answers = lambda body: answer({**body, "max_tokens": 10})[:10]
    server.finish = "length"
    store = store_of(tmp_path, ["one", "two", "three"]).folder
    process = start(store, "sentiment", "--by", f"openai:tiny@{server.url}")
    out, _ = process.communicate(timeout=60)
    summary = json.loads(out)
    assert process.returncode == 1 and summary["labelled"] == 0 == labelled(store)
    assert summary["failed"] == {"cut_short": 3} and summary["calls"] == 12


@pytest.mark.slow
def test_bounded_strings_with_raw_control_characters_are_counted(tmp_path: Path, server: Server) -> None:
    """What xgrammar gives for a bounded string (design/labels.md#answers-by-schema): labels, and the report says that
    strict parsers would
    have lost them; half a string is no label."""
    said = iter(['{"label": "NEUTRAL", "reason": "a\tb"}', '{"label": "NEUTRAL", "reason": "a\x16b"}'])
    server.answers = lambda body: next(said) if "odd" in material(body) else label("NEUTRAL")
    store = store_of(tmp_path, ["odd one", "odd two", "plain"]).folder
    summary = finished(start(store, "sentiment", "--by", f"openai:tiny@{server.url}", "--concurrency", 1))
    assert summary["loosely_parsed"] == 2 and summary["labelled"] == 3


@pytest.mark.slow
def test_under_faults_everything_finishes_or_fails_with_a_reason(store: Path, server: Server) -> None:
    """Busy, failing, cut, talking nonsense, hanging: a tenth of the calls each time. What succeeded is called once."""
    rng = random.Random(5)  # noqa: S311  (no secret)
    lock = threading.Lock()
    faults: list[Fault] = [429, 500, "cut", "not json", "hang"]

    def fault(body: dict[str, Any]) -> Fault:
        with lock:
            n = int(material(body).split()[1])
            if n % 50 == 7:
                return 400  # never to be mended
            return rng.choice(faults[: 5 if rng.random() < 0.05 else 4]) if rng.random() < 0.15 else None

    def answers(body: dict[str, Any]) -> str:
        with lock:
            return "{cut" if rng.random() < 0.05 else label("NEUTRAL")

    server.fault, server.answers = fault, answers
    by = f"openai:tiny@{server.url}"
    arguments = ("sentiment", "--by", by, "--concurrency", 16, "--timeout", 5)
    summary = finished(start(store, *arguments))
    assert summary["failed"]["refused"] == MESSAGES / 50
    assert summary["labelled"] + sum(summary["failed"].values()) == MESSAGES
    assert sum(server.answered.values()) <= MESSAGES * 1.15, "invalid answers are the only ones asked for again"
    before = dict(server.answered)
    failed = {int(material(r).split()[1]) for r in server.requests} - {int(t.split()[1]) for t in before}
    server.fault = lambda _: None
    server.answers = lambda _: label("NEUTRAL")
    summary = finished(start(store, *arguments))
    assert summary["labelled"] == MESSAGES == labelled(store) and summary["failed"] == {}
    asked_again = {text for text, n in server.answered.items() if n > before.get(text, 0)}
    assert {int(t.split()[1]) for t in asked_again} >= failed
    assert len(asked_again) == summary["calls"] <= MESSAGES / 50 + 5


@pytest.mark.slow
def test_ctrl_c_writes_the_labels_there_are(store: Path, server: Server) -> None:
    server.delay_s = 0.02
    process = start(store, "sentiment", "--by", f"openai:tiny@{server.url}")
    wait_for(server, 60)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and b"interrupted" in err
    assert len(server.answered) == labelled(store) >= 60, "calls under way were waited for"
    finished(start(store, "sentiment", "--by", f"openai:tiny@{server.url}"))
    assert labelled(store) == MESSAGES and set(server.answered.values()) == {1}


def test_without_model_or_network_rules_judge_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path, ["this is ridiculous", "do it"]).folder
    assert main(["label", "sentiment", "--store", str(store)]) == 0
    out, err = capsys.readouterr()
    assert "labelling by rules, on this machine: kappa" in err and "lower bounds" in err
    assert "labelled    2 labels in 1 session" in out
    assert (
        "counts      at least 1 NEGATIVE (54% of 24 right), at most 1 NEUTRAL (97% of 1,484 right)" in out
        and "kappa 0.50 [0.39, 0.60] on 1,573 random messages of 106 unseen projects" in out
    )
    assert labelled(store) == 2
    assert main(["label", "sentiment", "--store", str(store), "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert found["labeller"] == "rules" and "kappa 0.50" in found["measured"]


def test_a_dry_run_says_what_would_go_where(tmp_path: Path, capsys: pytest.CaptureFixture[str], server: Server) -> None:
    store = store_of(tmp_path, ["one", "two"]).folder
    arguments = ["label", "sentiment", "--dry-run", "--store", str(store), "--by"]
    out = printed(capsys, *arguments, "openai:gpt-4o-mini@http://192.0.2.1:1/v1")
    assert f"goes to     http://192.0.2.1:1/v1, {MASKED_NOTICE}" in out
    assert "calls       2, about" in out and "$0.00" in out
    said = printed_json(capsys, *arguments, f"openai:tiny@{server.url}")
    assert said["calls"] == 2 and not server.requests
    assert said["goes_to"] == f"{server.url}, {LOCAL_NOTICE}; --redact masks them"
    assert main([*arguments, f"openai:tiny@{server.url}", "--json", "--redact"]) == 0
    assert json.loads(capsys.readouterr().out)["goes_to"] == f"{server.url}, {MASKED_NOTICE}"


def test_a_server_on_this_machine_gets_texts_as_they_are_after_a_notice_and_masked_where_that_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: Server
) -> None:
    store = store_of(
        tmp_path, ["DB_PASSWORD=Jd6pF4gM0uZx7r in /home/brunhildgard/shop", "why not Jd6pF4gM0uZx7r?"]
    ).folder
    arguments = ["label", "sentiment", "--store", str(store), "--by", f"openai:tiny@{server.url}"]
    assert main(arguments) == 0 and "unmasked" in capsys.readouterr().err
    assert json.dumps(server.requests).count("Jd6pF4gM0uZx7r") >= 2
    server.requests.clear()
    assert main([*arguments, "--redact"]) == 0 and MASKED_NOTICE in capsys.readouterr().err
    sent = json.dumps(server.requests)
    assert server.requests and "Jd6pF4gM0uZx7r" not in sent and "brunhildgard" not in sent


def test_the_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = {row["task"]: row for row in printed_json(capsys, "label")}
    assert found["sentiment"]["values"] == "POSITIVE, NEUTRAL, NEGATIVE" and set(found) == {*tasks(), "topic"}


@pytest.mark.parametrize(
    "line",
    [
        "label mood",
        "label sentiment --by oracle",
        "label sentiment --by openai:",
        "label sentiment --by rules:x",
        "label persona --by rules",
        "label sentiment --limit 0",
        "label sentiment --from x",
        "label sentiment --labeller x",
        "label sentiment --from x --labeller y --by rules",
        "label sentiment --sample 5",
        "label sentiment --export-gold f.jsonl --sample -1",
        "label sentiment --export-gold f.jsonl --from g.jsonl --labeller x",
        "annotate sentiment",
        "annotate sentiment --as ''",
        "annotate sentiment --as x --sample 0",
        "annotate sentiment --as x --gold f.jsonl --seed 1",
        "agree sentiment rules",
        "agree sentiment rules ann --gold x.jsonl --settle y.jsonl",
        "agree sentiment rules ann --column x",
        "agree sentiment rules --gold x.parquet",
        "agree moods rules ann",
        "agree sentiment ann ann",
        "agree sentiment a b c --settle x.jsonl",
        "agree sentiment rules --gold f.jsonl --settle g.jsonl",
    ],
)
def test_wrong_usage_exits_2(one_message: Path, line: str) -> None:
    assert main([*shlex.split(line), "--store", str(one_message)]) == 2


def test_a_condition_that_is_no_sql_is_an_error_not_a_crash(
    one_message: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label", "sentiment", "--where", "nonsense(", "--store", str(one_message), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "query"


def test_published_labels_are_taken_under_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path, ["this is ridiculous", "do it"]).folder
    published = tmp_path / "published.parquet"
    names = ["session_id", "turn", "sentiment_label", "content_text"]
    given = [(session_id(0), 1, "NEGATIVE", "this is ridiculous"), ("elsewhere", 1, "NEUTRAL", "x")]
    columns = dict(zip(names, map(list, zip(*given, strict=True)), strict=True))
    pq.write_table(pa.table(columns), published)
    arguments = ["label", "sentiment", "--from", str(published), "--labeller", "qwen", "--store", str(store)]
    found = printed_json(capsys, *arguments)
    assert (found["labels"], found["unmatched_labels"]) == (1, 1)
    assert rows(Store(store), "SELECT labeller, turn, value FROM labels")[1] == [("qwen", 0, "NEGATIVE")]
    assert "imported    1 label of 1 session" in printed(capsys, *arguments)
