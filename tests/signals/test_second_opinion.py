"""Signals of real sessions against figures taken from the raw lines by another road."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.claude_code.reader import read
from agentsignals.model import Absent, Artifact, Session, from_iso
from agentsignals.signals.catalog import measure, plain
from agentsignals.views.session import SessionView
from agentsignals.words.vectors import _STOP

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "claude-code"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/corpus is not there"),
]

USAGE = {
    "tokens.input_tokens_total": "input_tokens",
    "tokens.output_tokens_total": "output_tokens",
    "tokens.cache_read_tokens": "cache_read_input_tokens",
    "tokens.cache_write_tokens": "cache_creation_input_tokens",
}


def transcripts(start: int = 0, step: int = 9) -> list[Path]:
    """Every ninth transcript, so that all repositories are met in little time."""
    return sorted(CORPUS.glob("*/*/transcript.jsonl"))[start::step]


def main_thread(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of the main thread, each once, with the number of its line."""
    seen: set[str] = set()
    for number, line in enumerate(path.read_text("utf-8", "replace").split("\n"), 1):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not record.get("isSidechain") and isinstance(record.get("message"), dict) and record.get("uuid") not in seen:
            seen.add(record.get("uuid"))
            yield number, record


def of_model(path: Path) -> list[dict[str, Any]]:
    """The records of the main thread that a model made."""
    made = (record for _, record in main_thread(path) if record.get("type") == "assistant")
    return [r for r in made if r["message"].get("model") != "<synthetic>" and not r.get("isApiErrorMessage")]


def measured(path: Path) -> tuple[Session, dict[str, Any]]:
    """The session of a transcript, and its results by path."""
    data = path.read_bytes()
    artifact = Artifact(artifact_id="a", source="s", path=str(path), format="claude-code", sha256="", bytes=len(data))
    (session, *_) = read([Input(data, artifact)]).sessions
    return session, {r.signal.path: r for r in measure(SessionView(session))}


def counted(records: list[dict[str, Any]]) -> dict[str, Any]:
    calls: dict[str, str] = {}
    usage: dict[str, Counter[str]] = {}
    for record in records:
        message = record["message"]
        most = usage.setdefault(message["id"], Counter())
        for field in USAGE.values():
            most[field] = max(most[field], message.get("usage", {}).get(field) or 0)
        calls |= {b["id"]: b["name"] for b in message["content"] if b["type"] == "tool_use"}
    totals = {path: sum(u[field] for u in usage.values()) for path, field in USAGE.items()}
    curve = [
        u["input_tokens"] + u["cache_read_input_tokens"] + u["cache_creation_input_tokens"] for u in usage.values()
    ]
    edits = sum(name in ("Edit", "MultiEdit", "Write", "NotebookEdit") for name in calls.values())
    return {
        **totals,
        "behavior.turn_count": len(usage),
        "behavior.tool_call_count": len(calls),
        "behavior.edit_calls": edits,
        "tokens.context_growth_curve[]": curve,
    }


@pytest.mark.parametrize("path", transcripts(), ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_counts_of_a_real_session_are_those_of_its_raw_lines(path: Path) -> None:
    found = {name: result.value for name, result in measured(path)[1].items()}
    records = of_model(path)
    assert {key: found[key] for key in counted(records)} == counted(records)
    stamps = [from_iso(r["timestamp"]) or 0 for r in records]
    if stamps:
        assert found["infra.wall_time_s"] >= (max(stamps) - min(stamps)) / 1_000_000
    shares = found["corpus.tool_class_mix"]
    assert isinstance(shares, Absent) or sum(shares.values()) == pytest.approx(1.0)


# Repetition, errors and commits of real sessions against figures taken from the raw lines by another road.

SAME_BY_NATURE = re.compile(r"Todo|Task|Agent|Skill|PlanMode|AskUserQuestion")
PERSON_OR_SIBLING = ("The user doesn't want to ", "<tool_use_error>Sibling tool call errored")


def blocks(path: Path) -> list[dict[str, Any]]:
    """Tool uses and results of the main thread in file order."""
    contents = (record["message"].get("content") for _, record in main_thread(path))
    said = (block for content in contents if isinstance(content, list) for block in content)
    return [block for block in said if block.get("type") in ("tool_use", "tool_result")]


def text(block: dict[str, Any]) -> str:
    content = block.get("content")
    return (
        content
        if isinstance(content, str)
        else "\n".join(p["text"] for p in content or [] if isinstance(p.get("text"), str))
    )


def repeats(found: list[dict[str, Any]], waits: set[str]) -> tuple[int, int]:
    """Calls that repeat an earlier one whatever was edited, of all but those that wait (`waits`: their ids)."""
    before: set[str] = set()
    n = total = 0
    for block in found:
        if block["type"] != "tool_use" or SAME_BY_NATURE.search(block["name"]) or block["id"] in waits:
            continue
        given = dict(block["input"])
        if "command" in given:
            given = {k: v for k, v in given.items() if k not in ("description", "timeout", "run_in_background")}
            given["command"] = " ".join(given["command"].split())
        key = json.dumps([block["name"], given], sort_keys=True)
        total += 1
        n += key in before
        before.add(key)
    return n, total


def failures(found: list[dict[str, Any]]) -> tuple[int, int]:
    answers = [b for b in found if b["type"] == "tool_result"]
    counted = [b for b in answers if not (b.get("is_error") and text(b).startswith(PERSON_OR_SIBLING))]
    return sum(bool(b.get("is_error")) for b in counted), len(counted)


@pytest.mark.parametrize("path", transcripts(4), ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_figures_agree_with_the_raw_lines(path: Path) -> None:
    session, results = measured(path)
    found = blocks(path)
    waits = {str(call.call_id) for call in session.tool_calls if call.purpose == "poll"}
    for name, numerator, (num, den) in (
        ("dynamics.repetition_rate", "equal", repeats(found, waits)),
        ("user.tool_error_rate", "num", failures(found)),
    ):
        result = results[name]
        if isinstance(result.value, Absent):
            assert den == 0, name
        else:
            assert result.detail is not None
            assert (result.detail[numerator], result.detail["den"]) == (num, den), name
            assert result.detail["num"] <= num, name


# Distances of real sessions against dense vectors over a whole vocabulary, made from the raw lines by another road.


def written(path: Path) -> dict[int, str]:
    """The agent's visible text of every line of the file, by its number."""
    found: dict[int, str] = {}
    for number, record in main_thread(path):
        content = record["message"].get("content")
        if record.get("type") == "assistant" and isinstance(content, list):
            texts = [b["text"] for b in content if b.get("type") == "text"]
            if texts:
                found[number] = "\n".join(texts)
    return found


def bare(text: str) -> str:
    """Without what stands between fences, and without links."""
    return re.sub(r"https?://[^ \t\n\r\f\v]+", " ", " ".join(text.split("```")[::2]))


def counts(text: str) -> dict[str, int]:
    spaced = re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    words = [w[:6] for w in re.findall(r"[^\W_]+", spaced) if len(w) > 1 and w not in _STOP]
    return {w: words.count(w) for w in set(words)}


def distance(one: str, other: str) -> float | None:
    a, b = counts(one), counts(other)
    axes = sorted({*a, *b})
    p, q = [a.get(w, 0) for w in axes], [b.get(w, 0) for w in axes]
    if not any(p) or not any(q):
        return None
    return 1 - sum(x * y for x, y in zip(p, q, strict=True)) / (math.hypot(*p) * math.hypot(*q))


def answers(session: Session, path: Path) -> list[str]:
    """What the agent wrote after each prompt: lines of the file between the lines of two prompts."""
    raw = written(path)
    lines = {e.seq: e.line for e in session.events}
    shown = {e.line for e in session.events if e.kind == "text" and e.thread == "main"}
    starts = [lines[t.seq] for t in session.turns]
    ends = [*starts[1:], math.inf]
    return [
        bare("\n".join(raw[n] for n in sorted(raw) if start < n < end and n in shown))[-8000:]
        for start, end in zip(starts, ends, strict=True)
    ]


@pytest.mark.parametrize("path", transcripts(3, 11), ids=lambda p: f"{p.parts[-3]}/{p.parts[-2]}")
def test_distances_agree_with_the_raw_lines(path: Path) -> None:
    session, results = measured(path)
    curve, coherence = results["dynamics.cp_curve[]"], results["dynamics.intent_coherence_curve[]"]
    if isinstance(curve.value, Absent):
        assert len(session.turns) < 2 or curve.value.detail == "no_request"
        return
    anchor = curve.detail["anchor_turn"]
    said = [bare(t.text) for t in session.turns]
    wrote = answers(session, path)
    for n in range(anchor, len(said)):
        assert_near(coherence.detail["raw"][n], distance(said[anchor][:8000], wrote[n]))
        window = [
            t for k in range(max(0, n - 2), n + 1) for t in (said[k][:4000] if k != anchor else "", wrote[k]) if t
        ]
        if n > anchor and sum(map(len, window)) < 7900:
            assert_near(curve.detail["raw"][n], distance(said[anchor][:8000], "\n".join(window)))


def assert_near(ours: float | None, theirs: float | None) -> None:
    assert ours is None if theirs is None else ours == pytest.approx(theirs, abs=0.0002)


# Structural figures of real sessions against figures taken from the raw lines by another road.

PERSON = "The user doesn't want to "


def raw_of_structure(path: Path) -> dict[str, Any]:
    """Result sizes, errors by tool and changes of model, straight from the lines."""
    names: dict[str, str] = {}
    commands: dict[str, str] = {}
    sizes: list[int] = []
    errors: Counter[str] = Counter()
    models: list[str] = []
    for _, record in main_thread(path):
        content = record["message"].get("content")
        model = record["message"].get("model")
        if record.get("type") == "assistant" and model and model[0] != "<" and model not in models[-1:]:
            models.append(model)
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                names[block["id"]] = block["name"]
                commands[block["id"]] = block["input"].get("command", "")
            elif block.get("type") == "tool_result" and block["tool_use_id"] in names:
                said = text(block)
                sizes.append(-(-len(said) // 4))
                if block.get("is_error") and not said.startswith((PERSON, "[Request interrupted")):
                    name, command = names[block["tool_use_id"]], commands.get(block["tool_use_id"], "")
                    if said != "Exit code 1" or not re.search(r"\bgrep\b[^|;&]*$", command):  # it found nothing
                        errors[name] += 1
    return {"sizes": sorted(sizes), "errors": dict(errors), "models": models}


def computed(path: Path) -> dict[str, Any]:
    found = {name: plain(result.value) for name, result in measured(path)[1].items() if result.turn is None}
    errors: Counter[str] = Counter()
    for row in found["user.tool_errors_by_type[]"]:
        errors[row["tool"]] += row["n"]
    changes = found["user.model_changes[]"]
    return {
        "sizes": sorted(found["user.tool_result_sizes[]"]),
        "errors": dict(errors),
        "models": [change["to_model"] for change in changes],
    }


def test_sizes_errors_and_models_are_those_of_the_raw_lines() -> None:
    compared = 0
    for path in transcripts(2):
        expected, found = raw_of_structure(path), computed(path)
        assert found["sizes"] == expected["sizes"], path
        assert found["errors"] == expected["errors"], path
        assert found["models"] == expected["models"][1:], path
        compared += len(expected["sizes"])
    assert compared > 300


# Figures of real sessions' words against what a slow and plain reading of their raw lines finds.

SEED_HEDGES = re.compile(r"\bi think\b|\bmight be\b|\bprobably\b|\bi'm not sure\b")
CAPITALS = re.compile(r"\b[A-Z]{3,}\b")


def without_code(text: str) -> str:
    """Line by line: a fence switches code on and off."""
    kept, code = [], False
    for line in text.split("\n"):
        if line.lstrip(" \t>").startswith("```") and "`" not in line.lstrip(" \t>`"):
            code = not code
        elif not code and not line.lstrip(" \t").startswith(">"):
            kept.append(re.sub(r'"[^"]{1,200}"|“[^”]{1,200}”', " ", re.sub(r"`[^`]{1,200}`", " ", line)))
    return "\n".join(kept).replace("’", "'")


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*/transcript.jsonl"))[::5], ids=lambda p: p.parts[-2])
def test_hedges_tokens_and_markers_are_those_of_the_raw_lines(path: Path) -> None:
    found = measured(path)[1]
    raw = [b["text"] for record in of_model(path) for b in record["message"]["content"] if b["type"] == "text"]
    said = [without_code(text) for text in raw]
    rate, marked = found["user.agent_hedging_rate"], found["loop.marker_score"]
    tokens = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in said)
    if not isinstance(rate.value, Absent):
        assert rate.detail is not None
        assert rate.detail["den"] == tokens
        literal = sum(len(SEED_HEDGES.findall(text.lower())) for text in said)
        assert rate.detail["seed_literal"] == pytest.approx(100 * literal / tokens)
    else:
        assert tokens == 0
    assert marked.detail is not None
    assert marked.detail["all_caps"] == sum(len(CAPITALS.findall(text)) for text in raw)
    assert marked.detail["exclamation"] == sum(text.count("!") for text in raw)
