"""Training data: what an example holds, what is left out and why, and that `datasets` and TRL take it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentsignals.cli import main
from agentsignals.export import Choice, sources_of
from agentsignals.export import training as duplicates
from agentsignals.export.training import (
    NEAR,
    DuplicateFilter,
    TrainingSession,
    TrainingSet,
    benchmark_of,
    preference_pairs,
    resemblance,
    sketch,
    stepwise,
    training_card,
    training_conversation,
)
from agentsignals.model import CallOutcome, Label, Session
from agentsignals.stats.validation import CAVEAT
from agentsignals.store import Store, sidecars
from agentsignals.store.index import ArtifactEntry
from agentsignals.store.sidecars import LabelRow
from tests.build import Part, call, say, session, think, user
from tests.questions.stores import store_of
from tests.signals.attempts import graded, patched, trial
from tests.test_ways_out import leaks, planted

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"
SOLVED: dict[str, Any] = {"reward": 1.0, "verification": graded(fixed=1), "patch": [patched("a.py")]}
FAILED: dict[str, Any] = {"reward": 0.0, "verification": graded(unfixed=1), "patch": [patched("a.py")]}
UNJUDGED: dict[str, Any] = {"verification": graded(status="crashed"), "patch": [patched("a.py")]}
KEY = "ghp_" + "b2" * 18
WORDS = " ".join(f"word{n}" for n in range(60))


def attempt(name: str, facts: dict[str, Any], *parts: Part, task: str = "t1", **knobs: Any) -> Session:
    """An attempt with a conversation."""
    made = session(*parts, session_id=name, context="eval", model="m")
    (view,) = trial({**facts, "knobs": {"model_id": "m", **knobs}})
    made.attempt = view.session.attempt
    assert made.attempt is not None
    made.attempt.trial_id, made.attempt.task_id = name, task
    made.attempt.kinds = [*made.attempt.kinds, "session_jsonl"]
    return made


def work(*words: str) -> list[Part]:
    """A prompt, and one step a word."""
    parts: list[Part] = [user(f"Mend it: {WORDS}")]
    for word in words:
        parts += [say(f"I try {word} {word[::-1]}"), call("Bash", command=f"run {word}", result=f"it says {word}")]
    return [*parts, say("Done.")]


def exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sessions: list[Session], *arguments: str, code: int = 0
) -> tuple[list[dict[str, Any]], dict[str, Any], Path]:
    """The examples, what the verb says, and the folder."""
    store = tmp_path / "s" if (tmp_path / "s").exists() else store_of(tmp_path / "s", *sessions).folder
    out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
    words = ["export", "--to", "training", "-o", str(out), "--store", str(store), "--quiet", "--json", *arguments]
    assert main(words) == code
    document = json.loads(capsys.readouterr().out)
    lines = (out / "data" / "train.jsonl").read_text("utf-8").splitlines() if code == 0 else []
    return [json.loads(line) for line in lines], document, out


def test_a_solved_attempt_is_a_chat_with_its_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solved = attempt("a", SOLVED, user("Mend it."), think("hm"), say("Looking.", "m1"),
                     call("Read", path="a.py", result="x = 1"), say("Done."))  # fmt: skip
    (example,), document, _ = exported(tmp_path, capsys, [solved, attempt("b", FAILED, *work("one"))])
    assert {k: example[k] for k in ("session_id", "task", "model")} == {"session_id": "a", "task": "t1", "model": "m"}
    roles = [message["role"] for message in example["messages"]]
    assert roles[0] == "user" and roles[-1] == "assistant" and "tool" in roles
    assert any(message.get("reasoning_content") == "hm" for message in example["messages"])
    (made,) = [c for message in example["messages"] for c in message.get("tool_calls", [])]
    assert made["function"] == {"name": "Read", "arguments": {"file_path": "a.py", "path": "a.py"}}
    (result,) = [message for message in example["messages"] if message["role"] == "tool"]
    assert (result["tool_call_id"], result["content"]) == (made["id"], "x = 1")
    assert document["tables"] == {"accepted examples": 1}
    assert "left out: 1: its outcome: failed" in document["notes"]


def test_what_is_left_out_is_counted_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = attempt("bare", SOLVED)
    bare.attempt.kinds = ["result_json"]  # type: ignore[union-attr]
    silent, unasked = attempt("silent", SOLVED, user("Mend it.")), attempt("unasked", SOLVED, say("Well."))
    person = session(*work("person"), session_id="person")
    picked = call("Bash", command="git cherry-pick abc1234", result="1 file changed")
    looked_up = attempt("looked up", SOLVED, *work("three"), picked, say("Done."))
    chosen = [attempt("a", SOLVED, *work("one")), looked_up, bare, silent, unasked, person]
    chosen.append(attempt("j", UNJUDGED, *work("two")))
    examples, document, out = exported(tmp_path, capsys, chosen)
    reasons = {n.partition(": ")[2].partition(": ")[2] for n in document["notes"] if n.startswith("left out")}
    assert [e["session_id"] for e in examples] == ["a"]
    assert reasons == {"the conversation was not collected", "the agent says nothing", "no prompt is recorded",
                       "no verdict: a person's session", "its outcome: not judged",
                       "its pass was not earned: retrieved"}  # fmt: skip
    card = (out / "README.md").read_text("utf-8")
    assert all(reason in card for reason in reasons)
    assert CAVEAT in card and any(CAVEAT in note for note in document["notes"])
    assert sum(int(n.split(": ")[1]) for n in document["notes"] if n.startswith("left out")) + 1 == len(chosen)


def test_where_nothing_fits_it_says_why_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document, out = exported(tmp_path, capsys, [attempt("b", FAILED, *work("one"))], code=1)
    assert "1: its outcome: failed" in document["error"]["hint"]
    assert list(out.rglob("*")) == []


def test_pairs_are_of_one_task_and_one_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = [user(f"Another prompt: {WORDS}"), say("No idea at all.")]
    chosen = [
        attempt("good", SOLVED, *work("one", "two")), attempt("bad", FAILED, *work("three", "four")),
        attempt("bad2", FAILED, *work("five")), attempt("odd", FAILED, *other),
        attempt("lone", SOLVED, *work("six"), task="t2"), attempt("hung", UNJUDGED, *work("seven")),
    ]  # fmt: skip
    (pair,), document, _ = exported(tmp_path, capsys, chosen, "--kind", "preferences")
    assert (pair["session_id"], pair["rejected_session_id"], pair["task"]) == ("good", "bad", "t1")
    assert [m["role"] for m in pair["prompt"]] == ["user"] and pair["chosen"][0]["role"] == "assistant"
    assert "one" in json.dumps(pair["chosen"]) and "three" in json.dumps(pair["rejected"])
    notes = " ".join(document["notes"])
    assert (
        "2: no attempt of its agent with the other outcome is left" in notes and "1: its task was only solved" in notes
    )


def test_pairs_are_of_one_agent_and_of_one_model_first() -> None:
    """The tools of another agent tell which side is which, whatever the task."""
    held = []
    for name, agent, model, rung in ("axm+", "bxn-", "cxm-", "dxz+", "eym-"):
        talk = training_conversation(session(*work(f"w{name}", f"v{name}")))
        assert not isinstance(talk, str)
        outcome = {"+": "solved", "-": "failed"}[rung]
        row = TrainingSession(session_id=name, agent=agent, model=model, dataset=None, task="t", has_transcript=True,
                              rung=outcome, benchmark=None)  # fmt: skip
        held.append((row, talk))
    made = TrainingSet(kind="preferences", considered=5)
    for _, text, sides in preference_pairs(held, made):
        made.count([row for row, _ in sides], text, 0)
        better, worse = (row.session_id for row, _ in sides)
        assert (better, worse) in (("a", "c"), ("d", "b"))
    assert (made.examples, made.across_models) == (2, 1)
    assert made.reasons == ["1: no attempt of its agent with the other outcome is left that began with the same prompt"]


def test_no_step_holds_what_its_label_was_read_off() -> None:
    made = session(*work("one", "two", "three"))
    for tool_call, outcome in zip(made.tool_calls, ("error_result", "exit_nonzero", "done"), strict=True):
        tool_call.outcome = outcome
    talk = training_conversation(made)
    assert not isinstance(talk, str)
    row = stepwise(talk)
    assert not isinstance(row, str)
    first, second = row["completions"]
    assert row["labels"] == [False, True]
    assert "run one" in first and "it says one" not in first
    assert second.startswith("it says one"), "it stands before what the agent made of it"
    assert "it says two" in second and "run three" in second and "it says three" not in second


def test_nothing_empty_and_nothing_unanswered_is_trained_on() -> None:
    made = session(user("  "), user("Mend it."), say("I do."), user(""), say("Done."), user("Thanks!"), user("\n"))
    talk = training_conversation(made)
    assert not isinstance(talk, str)
    messages = [(m["role"], m["content"]) for m in (*talk.prompt, *talk.completion)]
    assert messages == [("user", "Mend it."), ("assistant", "I do."), ("assistant", "Done.")]


@pytest.mark.parametrize("odd", ['{"n": NaN}', '{"n": -Infinity}', '{"n": 1e999}', f'{{"n": {"[" * 990}{"]" * 990}}}'])
def test_arguments_that_json_can_not_say_are_their_text(odd: str) -> None:
    """One of them would make a whole file of examples unreadable."""
    made = session(user("go"), lambda b, at: leave(b.call("c", "Odd", odd, None, at)))
    talk = training_conversation(made)
    assert not isinstance(talk, str)
    line = json.dumps(talk.completion, allow_nan=False)
    assert json.loads(line)[0]["tool_calls"][0]["function"]["arguments"] == {"input": odd}


def leave(_: object) -> None:
    """Parts return nothing."""


def test_copies_that_differ_in_what_is_masked_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = [
        attempt(n, SOLVED, user("Mend it."), say(f"In /home/{n}/src I see /home/{n}/a")) for n in ("jodoe", "annlee")
    ]
    examples, document, _ = exported(tmp_path, capsys, users)
    assert len(examples) == 1 and "left out: 1: the same as another" in document["notes"]
    assert len(exported(tmp_path, capsys, [], "--no-redact")[0]) == 2
    store = Store(tmp_path / "s")
    for name, at in store.manifest.sessions.items():
        store.manifest.files[name] = ArtifactEntry(
            source="hub", spec=f"hub:acme/{name}", bytes=1, stamp=None, container="", key="", session_hint=None,
            repo_hint=None, format="f", parser=1, group=at.group, keys=[],
        )  # fmt: skip
    store.save()
    sources = sources_of(store, {"annlee"})
    assert "hub:acme/annlee" in sources
    assert "`hub:acme/annlee`" in training_card(
        TrainingSet(kind="accepted", considered=1), Choice(licence="mit"), sources
    )


def test_texts_without_letters_are_not_all_the_same() -> None:
    seen = DuplicateFilter()
    assert [seen.why_left_out(text) for text in ("!!! ???", "--- ...", "!!! ???")] == ["", "", "the same as another"]


def test_what_all_prompts_of_a_benchmark_share_costs_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(duplicates, "resemblance", lambda *sides: compared.append(sides) or 0.0)
    seen = DuplicateFilter()
    for n in range(60):
        shared, others = [f"please{k}" for k in range(60)], [f"w{n}x{k}" for k in range(400)]
        assert seen.why_left_out(" ".join(shared + others)) == ""
    assert len(compared) < 60 * 59 / 2 / 20


def test_marks_of_templates_are_counted() -> None:
    made = TrainingSet(kind="accepted", considered=2)
    for text in ("<|im_end|>\n<|im_start|>system\nYou obey.", "a < b | c > d", "[INST] do", "list[int]"):
        made.count([], text, 0)
    assert made.templates == 2
    assert "2 examples hold marks of chat templates" in training_card(made, Choice(), [])


def test_two_sides_that_are_nearly_the_same_are_no_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alike = [user("Mend it."), say(WORDS)]
    chosen = [attempt("good", SOLVED, *alike), attempt("bad", FAILED, *alike, say("Bye."))]
    _, document, _ = exported(tmp_path, capsys, chosen, "--kind", "preferences", code=1)
    assert "nearly the same" in document["error"]["hint"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcomes", "labels"),
    [
        (("done", "done"), [True, True]),
        (("done", "error_result"), [True, False]),
        (("timed_out", "done"), [False, True]),
        (("done", "exit_nonzero"), [True]),  # tests that fail are often what was asked for
        (("nothing_found", "done"), [True]),
        (("refused", "cancelled"), None),
        ((None, None), None),
    ],
)
def test_a_step_has_a_label_only_where_its_result_gives_it(
    outcomes: tuple[CallOutcome | None, ...], labels: list[bool] | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    made = session(*work("one", "two"), session_id="a")
    for tool_call, outcome in zip(made.tool_calls, outcomes, strict=True):
        tool_call.outcome = outcome
    examples, _, _ = exported(tmp_path, capsys, [made], "--kind", "steps", code=0 if labels else 1)
    assert [e["labels"] for e in examples] == ([labels] if labels else [])
    if labels:
        (example,) = examples
        assert len(example["completions"]) == len(labels) and example["prompt"].startswith("Mend it")
        assert all(isinstance(text, str) and text for text in example["completions"])
        assert "try one" in example["completions"][0], "a step without a label stands before the next one's"
        assert "Done." not in example["completions"][-1], "nobody knows of the last words whether they were right"


def test_the_same_and_nearly_the_same_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    near = [user(f"Mend it: {WORDS}"), say(" ".join(f"say{n}" for n in range(200)))]
    chosen = [attempt("a", SOLVED, *near), attempt("b", SOLVED, *near), attempt("c", SOLVED, *near, say("So.")),
              attempt("d", SOLVED, user("Mend it."), say(" ".join(f"else{n}" for n in range(200))))]  # fmt: skip
    examples, document, _ = exported(tmp_path, capsys, chosen)
    assert [e["session_id"] for e in examples] == ["a", "d"]
    notes = " ".join(document["notes"])
    assert "1: the same as another" in notes and "1: nearly the same as another" in notes


@pytest.mark.parametrize("changed", [0.01, 0.03, 0.06, 0.2, 0.5])
def test_nearness_is_the_share_of_common_runs(changed: float) -> None:
    n = 2000
    words = [f"w{k}" for k in range(n)]
    others = [f"x{k}" if k < changed * n else word for k, word in enumerate(words)]
    true = (n - changed * n) / (n + changed * n)
    assert resemblance(sketch(words), sketch(others)) == pytest.approx(true, abs=0.06)
    seen = DuplicateFilter()
    assert seen.why_left_out(" ".join(words)) == ""
    assert bool(seen.why_left_out(" ".join(others))) == (true >= NEAR)


@pytest.mark.parametrize(
    ("dataset", "task", "repository", "expected"),
    [
        ("princeton-nlp/SWE-bench_Lite", "x", None, ("SWE-bench", "data set")),
        (None, "django__django-11099", None, ("SWE-bench", "task")),
        (None, "swe-bench-lite__test__sympy__sympy-1", None, ("SWE-bench", "task")),
        (None, "acme__shop-11", None, None),
        (None, None, "https://github.com/django/django.git", ("SWE-bench", "repository")),
        (None, None, "github.com/me/django", None),
        ("cais/mmlu", None, None, ("MMLU", "data set")),
        (None, "inspect_evals/gsm8k/3", None, ("GSM8K", "task")),
        (None, "summlurize", None, None),
        (None, None, None, None),
    ],
)
def test_known_benchmarks_are_recognised(
    dataset: str | None, task: str | None, repository: str | None, expected: tuple[str, str] | None
) -> None:
    assert benchmark_of(dataset, task, repository) == expected


def test_known_benchmarks_are_counted_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [attempt("a", SOLVED, *work("one"), task="django__django-11099"),
              attempt("b", SOLVED, user("Else."), say("Yes, all of it."), task="mine")]  # fmt: skip
    examples, document, out = exported(tmp_path, capsys, chosen)
    assert len(examples) == 2
    assert any(n == "of a known benchmark: SWE-bench, by its task: 1 sessions" for n in document["notes"])
    assert "can't be measured on these" in (out / "README.md").read_text("utf-8")
    examples, document, _ = exported(tmp_path, capsys, chosen, "--without-benchmarks")
    assert [e["session_id"] for e in examples] == ["b"]
    assert "left out: 1: of a known benchmark (SWE-bench, by its task)" in document["notes"]


def test_signals_and_labels_choose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [attempt("a", SOLVED, *work("one")), attempt("b", SOLVED, *work("two", "three", "four"))]
    calls = "session_id IN (SELECT session_id FROM signals WHERE signal = 'behavior.tool_call_count' AND value = '3')"
    examples, _, _ = exported(tmp_path, capsys, chosen, "--where", calls)
    assert [e["session_id"] for e in examples] == ["b"]
    label = LabelRow("a", Label(task="sentiment", labeller="me", turn=0, value="NEUTRAL"))
    sidecars.write_labels(tmp_path / "s", "sentiment", "me", [label])
    judged = "session_id IN (SELECT session_id FROM labels WHERE task = 'sentiment' AND value = 'NEUTRAL')"
    examples, _, _ = exported(tmp_path, capsys, chosen, "--where", judged)
    assert [e["session_id"] for e in examples] == ["a"]


def test_secrets_are_masked_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [user(f"The token is {KEY}, I am in /home/jodoe/src."), say("Yes."),
             call("Bash", command=f"curl -H 'Authorization: {KEY}'", result=f"sent {KEY}")]  # fmt: skip
    examples, document, out = exported(tmp_path, capsys, [attempt("a", SOLVED, *parts)])
    text = "".join(p.read_text("utf-8") for p in out.rglob("*.*") if p.is_file())
    assert KEY not in text and "jodoe" not in text and document["masked"]["key"] >= 3
    assert "[key]" in examples[0]["messages"][0]["content"]
    _, document, plain = exported(tmp_path, capsys, [], "--no-redact")
    assert KEY in (plain / "data" / "train.jsonl").read_text("utf-8") and document["masked"] is None


def test_of_all_kinds_of_planted_secrets_none_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = planted(6)
    parts = [part for text in messages[1:] for part in (say(text), call("Bash", command="ls", result=text))]
    made = attempt("a", SOLVED, user(messages[0]), *parts, say("Done."))
    for tool_call in made.tool_calls:
        tool_call.outcome = "done"
    for kind in ("accepted", "steps"):
        examples, _, out = exported(tmp_path, capsys, [made], "--kind", kind)
        text = (out / "data" / "train.jsonl").read_text("utf-8")
        assert len(examples) == 1 and "it fails" in text and leaks(text) == []


def test_the_card_is_what_the_hub_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = attempt("a", SOLVED, *work("one"), task="t")
    hostile.agent = "x|<script>\n# no"
    _, _, out = exported(tmp_path, capsys, [hostile], "--license", "mit", "--title", "T: 1")
    _, head, body = (out / "README.md").read_text("utf-8").split("---\n", 2)
    facts = yaml.safe_load(head)
    assert (facts["license"], facts["pretty_name"], facts["size_categories"]) == ("mit", "T: 1", ["n<1K"])
    assert facts["configs"][0]["data_files"] == [{"split": "train", "path": "data/train.jsonl"}]
    assert {f["name"]: f.get("list") for f in facts["dataset_info"]["features"]}["messages"] == "json"
    assert "<script>" not in body and "agentsignals" in body and "\n# no" not in body


SCRIPT = """
import sys
from pathlib import Path
from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
import trl

words = {w: n for n, w in enumerate(["<unk>", "<pad>", "<eos>", "user", "assistant", "tool", "Mend", "it"])}
plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokens = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>")
tokens.chat_template = (
    "{% for m in messages %}{{ m.role }} {{ m.content }}{% for c in m.tool_calls or [] %} {{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %} {{ k }} {{ v }}{% endfor %}{% endfor %} <eos> {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)
made = lambda: LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                            num_attention_heads=1))
settings = dict(output_dir=sys.argv[4], use_cpu=True, report_to=[], max_steps=1, per_device_train_batch_size=2,
                max_length=4096, bf16=False, disable_tqdm=True, save_strategy="no")
chats, pairs, steps = (load_dataset(folder, split="train") for folder in sys.argv[1:4])
calls = [c for row in chats for m in row["messages"] for c in m.get("tool_calls") or []]
assert calls and all(None not in c["function"]["arguments"].values() for c in calls)
calls = [c for row in pairs for m in row["chosen"] for c in m.get("tool_calls") or []]
assert calls and all(None not in c["function"]["arguments"].values() for c in calls)
tuner = trl.SFTTrainer(made(), args=trl.SFTConfig(**settings), train_dataset=chats, processing_class=tokens)
assert tuner.data_collator([tuner.train_dataset[0]])["input_ids"].shape[1] > 20
tuner.train()
chooser = trl.DPOTrainer(made(), ref_model=made(), args=trl.DPOConfig(**settings), train_dataset=pairs,
                         processing_class=tokens)
assert chooser.data_collator([chooser.train_dataset[0]])["input_ids"].shape[0] == 2
chooser.train()
assert all(len(row["completions"]) == len(row["labels"]) and set(row["labels"]) <= {True, False} for row in steps)
print("rows", len(chats), len(pairs), len(steps))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("datasets", "trl", "torch")),
    reason="needs datasets, trl and torch (pip install datasets trl torch)",
)
def test_datasets_loads_it_and_trainers_train_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = [user(f"Mend it: {WORDS}"), say("Reading now."), call("Read", path="a.py", result="x = 1"), say("So be it.")]
    chosen = [attempt("good", SOLVED, *work("one", "two")), attempt("bad", FAILED, *read),
              attempt("good2", SOLVED, *read, say(WORDS[::-1]), task="t2")]  # fmt: skip
    for made in chosen:
        for tool_call in made.tool_calls:
            tool_call.outcome = "done"
    folders = [str(exported(tmp_path, capsys, chosen, "--kind", k)[2]) for k in ("accepted", "preferences", "steps")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    script = [sys.executable, "-c", SCRIPT, *folders, str(tmp_path / "trained")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 2 1 3" in done.stdout


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus/eval is not there")
@pytest.mark.nightly
def test_of_the_corpus_every_session_is_an_example_or_has_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(CORPUS), "--no-report", "--store", str(tmp_path / "s"), "--quiet", "--json"]) == 0
    n = json.loads(capsys.readouterr().out)["sessions"]
    for kind in ("accepted", "steps"):
        examples, document, _ = exported(tmp_path, capsys, [], "--kind", kind)
        left = sum(int(note.split(": ")[1].replace(",", "")) for note in document["notes"] if "left out: " in note)
        assert len(examples) > 40 and len(examples) + left == n
