"""The card of training data: what an example is, where it comes from, what was left out and why."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version

from agentsignals.analysis.pass_caveat import CAVEAT
from agentsignals.export import Choice
from agentsignals.export.card import UNKNOWN_LICENCE, closing, head, in_rows, plain, size
from agentsignals.export.training.made import Made
from agentsignals.store.manifest import SCHEMA_VERSION

LOSES = (
    "what the tools are declared as: logs hold their calls alone, so there is no column `tools`",
    "instructions of the system, where a log does not have them as a prompt",
    "subagents' conversations, and branches that the person left",
    "events that are no words, calls or results",
    "the part of a long tool result that the store does not keep",
)
TEMPLATES = "hold marks of chat templates as words: have the tokenizer read them as such (`split_special_tokens`)"
_IS = {
    "accepted": "Conversations (`messages`) of attempts that their verifier found solved, for supervised fine-tuning.",
    "preferences": "Two attempts of one agent at one task with one prompt: `chosen` was solved, `rejected` failed, as"
    " their verifier found; for preference optimisation (DPO and its like). Those of one model were paired first.",
    "steps": "A `prompt`, `completions` step by step, and `labels`: whether the calls of the step worked, as their"
    " results say; the results stand at the beginning of the next completion. No label says that a step was wise. Steps"
    " of which this is not known have none: their words stand before the next one's.",
}
_COLUMNS: dict[str, list[dict[str, str]]] = {
    "accepted": [{"name": "messages", "list": "json"}],
    "preferences": [{"name": name, "list": "json"} for name in ("prompt", "chosen", "rejected")],
    "steps": [
        {"name": "prompt", "dtype": "string"},
        {"name": "completions", "list": "string"},
        {"name": "labels", "list": "bool"},
    ],
}
_OF_ONE = ("session_id", "agent", "model", "dataset", "task")
_ABOUT = {"accepted": _OF_ONE, "steps": _OF_ONE, "preferences": (*_OF_ONE, "rejected_session_id", "rejected_model")}
_TASKS = {"accepted": "text-generation", "preferences": "reinforcement-learning", "steps": "reinforcement-learning"}


def training_card(made: Made, choice: Choice, sources: list[str]) -> str:
    """The README of the folder."""
    title = choice.title or f"Coding agents: {made.kind}"
    facts = {
        "pretty_name": title,
        "license": choice.licence or UNKNOWN_LICENCE,
        "task_categories": [_TASKS[made.kind]],
        "tags": ["coding-agents", "agent-traces", "agentsignals", "trl"],
        "size_categories": [size(made.examples)],
        # Declared: of arguments that differ from call to call a table would make one, filled with nothing.
        "dataset_info": {
            "features": [*_COLUMNS[made.kind], *({"name": n, "dtype": "string"} for n in _ABOUT[made.kind])]
        },
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train.jsonl"}]}],
    }
    return f"---\n{head(facts)}---\n\n" + "\n".join(
        [
            f"# {plain(title)}",
            "",
            _IS[made.kind],
            "",
            f"{made.examples:,} examples out of {made.considered:,} sessions, made by agentsignals"
            f" {version('agentsignals')} (store schema {SCHEMA_VERSION}).",
            "",
            "```python",
            "from datasets import load_dataset",
            "",
            'examples = load_dataset("FOLDER", split="train")',
            "```",
            "",
            *_counted("agent", made.agents),
            *_counted("model", made.models),
            *_counted("data set of the task", made.datasets),
            "## What was left out",
            "",
            *(in_rows(("reason", "sessions or pairs"), made.left_out.most_common()) or ["Nothing."]),
            "",
            "Two texts are nearly the same from 80 percent of common runs of five words on; the first of them stays.",
            "",
            "## Known benchmarks",
            "",
            *_benchmarks(made, choice),
            "",
            "## What it can't say",
            "",
            *(f"- {loss}" for loss in LOSES),
            *([f"- No pass is here that is known not to be earned. {CAVEAT}"] if made.kind != "steps" else []),
            f"- {made.cut_results:,} long results of tools are there by their ends alone.",
            f"- {made.templates:,} examples {TEMPLATES}.",
            "",
            *closing(choice.licence, sources, choice.redactor.counts if choice.redactor else None),
        ]
    )


def _counted(name: str, counts: Counter[str]) -> list[str]:
    return [*in_rows((name, "sessions"), counts.most_common(30)), ""]


def _benchmarks(made: Made, choice: Choice) -> list[str]:
    if choice.without_benchmarks:
        lines = ["Sessions of known benchmarks were left out."]
    elif made.benchmarks:
        lines = ["**A model trained on this can't be measured on these:**", ""]
        lines += [f"- {line}" for line in made.contamination]
    else:
        lines = ["None was recognised."]
    return [*lines, "", "Recognised by the names of data sets and tasks, and by SWE-bench's repositories: what goes by"
            " another name passes."]  # fmt: skip
