"""A retry loop as logs of Inspect (inspect_ai's format 2): one a condition, a sample a task, an epoch a sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from agentsignals import private_files

from agentsignals_lab.comparing import episodes_of
from agentsignals_lab.retry.trace import MARK, name_of
from agentsignals_lab.runs import Run

_SCORES = ("full_pass", "visible_pass", "hidden_pass", "hardcoded")
"""The first is the headline."""
_STOPPED = {"stop": "stop", "length": "max_tokens"}


def write_logs(run: Run, folder: Path) -> list[Path]:
    """Writes CONDITION.json for each condition into the folder. LabError for a run that is no retry loop, or has no
    finished episode."""
    episodes_of(run)
    by_condition: dict[str, list[list[dict[str, Any]]]] = {}
    for path in sorted((run.folder / "traces").glob("*/*.jsonl")):
        records = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
        if "final" in records[-1]:  # an episode that is over
            by_condition.setdefault(records[0]["condition"]["name"], []).append(records)
    private_files.make_folder(folder)
    written = []
    for name, episodes in by_condition.items():
        path = folder / f"{name_of(name, '', 0).split('/')[0]}.json"
        private_files.write(
            path, msgspec.json.format(msgspec.json.encode(_log(run, name, episodes)), indent=1).decode()
        )
        written.append(path)
    return written


def _log(run: Run, condition: str, episodes: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    header = episodes[0][0]
    model = str(run.manifest.model.get("name") or "unknown")
    samples = [_sample(model, records) for records in episodes]
    scores = []
    for name in _SCORES:
        values = [float(one["scores"][name]["value"]) for one in samples if name in one["scores"]]
        if values:
            accuracy = {"accuracy": {"name": "accuracy", "value": fmean(values), "params": {}}}
            scores.append({"name": name, "scorer": name, "params": {}, "metrics": accuracy})
    name_of_run = f"{header['run_id']}-{condition}"
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": name_of_run, "run_id": header["run_id"], "task_id": name_of_run, "task": "agentsignals_retry",
            "task_version": header[MARK], "created": run.manifest.started_at, "model": model,
            "task_args": {"condition": condition, "attempts": header["max_attempts"]},
            "model_generate_config": {"max_tokens": header["max_new_tokens"],
                                      **{name: header[name] for name in ("temperature", "top_p", "seed")}},
            "dataset": {"name": "tasks", "samples": len({one["id"] for one in samples}),
                        "sample_ids": sorted({one["id"] for one in samples})},
            "headline_metric": {"scorer": _SCORES[0], "metric": "accuracy"},
            "config": {"epochs": max(one["epoch"] for one in samples)},
            "packages": run.manifest.packages,
            "metadata": {"condition": header["condition"], "evaluator": header["evaluator"], "texts": header["texts"]},
        },
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores},
        "stats": {"started_at": run.manifest.started_at, "model_usage": _usage(model, samples)},
        "samples": samples,
    }  # fmt: skip


def _sample(model: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One episode. A score that is not known, since the machine could not run the answer, is left out."""
    header, final = records[0], records[-1]["final"]
    attempts = [record["attempt"] for record in records if "attempt" in record]
    messages = [_message(model, record["message"]) for record in records if "message" in record]
    first = next(n for n, one in enumerate(messages) if one["role"] == "assistant")
    last = attempts[-1]
    choice = {"message": [one for one in messages if one["role"] == "assistant"][-1],
              "stop_reason": _STOPPED.get(last["finish"], "unknown")}  # fmt: skip
    told = [one for one in attempts if one["tokens"] is not None and one["prompt_tokens"] is not None]
    put_in, out = sum(one["prompt_tokens"] for one in told), sum(one["tokens"] for one in told)
    usage = {"input_tokens": put_in, "output_tokens": out, "total_tokens": put_in + out}
    return {
        "id": final["task"],
        "epoch": final["sample"] + 1,
        "input": messages[:first],
        "target": "",
        "messages": messages,
        "output": {"model": model, "choices": [choice]},
        "scores": {
            name: {"value": final[name], "answer": last["source"], "explanation": last["error"] or None}
            for name in _SCORES
            if final[name] is not None
        },
        "metadata": {"family": header["task"]["family"], "attempts": attempts,
                     **{name: final[name] for name in ("failed_first", "recovered", "regressed", "repeated")}},
        "model_usage": {model: usage} if told else {},
    }  # fmt: skip


def _message(model: str, message: dict[str, Any]) -> dict[str, Any]:
    text = "".join(piece["text"] for piece in message["pieces"])
    made = {"role": message["speaker"], "content": text}
    return {**made, "source": "generate", "model": model} if message["speaker"] == "assistant" else made


def _usage(model: str, samples: Iterable[dict[str, Any]]) -> dict[str, Any]:
    of_samples = [one["model_usage"][model] for one in samples if one["model_usage"]]
    names = ("input_tokens", "output_tokens", "total_tokens")
    return {model: {name: sum(one[name] for one in of_samples) for name in names}} if of_samples else {}
