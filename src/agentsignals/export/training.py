"""Training data: accepted trajectories, preference pairs and labelled steps of eval attempts, and people's refusals.
Nothing is uploaded.

Only results of a verifier or a tool, and what a person refused, are labels. What is left out is counted with its
reason, also on the card.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import nsmallest
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import ExportError, UsageError
from agentsignals.export import (
    Choice,
    Exported,
    WholeWriter,
    data_card,
    empty_folder,
    finish_folder,
    markdown_table,
    queries,
    size_category,
    sources_of,
    write_rows,
)
from agentsignals.export.messages import Message as Move
from agentsignals.export.messages import arguments, without_nones
from agentsignals.export.messages import main_messages as moves
from agentsignals.model import CallOutcome, Session, ToolCall
from agentsignals.questions.question import part_text
from agentsignals.redaction import redacted
from agentsignals.stats.intervals import wilson
from agentsignals.stats.validation import CAVEAT
from agentsignals.store import Store
from agentsignals.store.index import SCHEMA_VERSION
from agentsignals.views.refusals import READ, refusals
from agentsignals.words.vectors import split_words

# Chat messages

Message = dict[str, Any]


class Conversation(Struct, frozen=True, kw_only=True):
    """A first prompt, and everything that followed."""

    prompt: list[Message]
    """Messages before the agent's first one."""
    moves: list[Move]
    """Messages that follow: the agent's, and the person's in between."""
    cut_results: int

    @property
    def completion(self) -> list[Message]:
        return [message for move in self.moves for message in messages(move)]

    @property
    def completion_text(self) -> str:
        return as_text(self.moves)

    @property
    def text(self) -> str:
        return f"{prompt_text(self.prompt)}\n{self.completion_text}"


def training_conversation(session: Session) -> Conversation | str:
    """Return the main thread; or the reason why there is none to train on."""
    whole = [move for move in moves(session) if move.text.strip() or move.thinking or move.calls]
    while whole and whole[-1].role == "user":
        whole.pop()  # nobody answered it
    first = next((n for n, move in enumerate(whole) if move.role == "agent"), len(whole))
    if first == len(whole):
        return "the agent says nothing"
    if first == 0:
        return "no prompt is recorded"
    results = [call.result for move in whole for call in move.calls if call.result is not None]
    return Conversation(
        prompt=[message for move in whole[:first] for message in messages(move)],
        moves=whole[first:],
        cut_results=sum(result.n_chars > len(result.text or "") for result in results),
    )


def messages(move: Move) -> list[Message]:
    """Return the chat message of a message, and one for each result of its calls, as trainers take them
    (https://huggingface.co/docs/trl/dataset_formats#tool-calling). Thinking is separate (`reasoning_content`), as
    templates of reasoning models expect."""
    if move.role == "user":
        return [{"role": "user", "content": move.text}]
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.call.name, "arguments": arguments(c.call)}}
        for c in move.calls
    ]
    of_agent = {
        "role": "assistant",
        "content": move.text,
        "reasoning_content": move.thought,
        "tool_calls": calls or None,
    }
    results = [
        {"role": "tool", "tool_call_id": c.id, "name": c.call.name, "content": c.result.text or ""}
        for c in move.calls
        if c.result is not None
    ]
    return [without_nones(of_agent), *results]


def as_text(moves_of_it: Iterable[Move]) -> str:
    return "\n".join(text for move in moves_of_it for text in (action_text(move), result_text(move)) if text)


def action_text(move: Move) -> str:
    """Return what a message says and calls, as plain text."""
    calls = [f"{c.call.name} {c.call.arguments}" for c in move.calls]
    return "\n".join(text for text in (move.thought or "", move.text, *calls) if text)


def result_text(move: Move) -> str:
    return "\n".join(c.result.text for c in move.calls if c.result is not None and c.result.text)


def prompt_text(prompt: Sequence[Message]) -> str:
    return "\n\n".join(message["content"] for message in prompt)


# Duplicates

RUN_WORDS = 5
NEAR = 0.8
"""Share of common five-word runs (Jaccard) from which two texts are near-duplicates (Lee et al. 2022, arXiv
2107.06499)."""
KEPT = 512
"""Hashes kept of a text: the share is off by 0.02 (standard error at 0.8)."""
_LOOKED_UP, _LIKELY = 16, 0.4
"""Texts are compared where they share 7 of their smallest 16 hashes: of two that share 0.8 of their runs all but one in
a thousand do, of those that share a tenth (instructions in every prompt of a benchmark) one in a hundred."""

Sketch = tuple[int, ...]


class DuplicateFilter:
    """Finds duplicates and near-duplicates among texts, by bottom-k sketches (Broder 1997, "On the resemblance and
    containment of documents")."""

    def __init__(self) -> None:
        self._exact: set[bytes] = set()
        self._by_hash: dict[int, list[int]] = {}
        self._sketches: list[Sketch] = []

    def why_left_out(self, text: str) -> str:
        """Add a text; return the reason to leave it out where an earlier text is the same, or nearly so."""
        words = split_words(text) or text.split()  # of signs alone
        exact = hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).digest()
        if exact in self._exact:
            return "the same as another"
        made = sketch(words)
        keys = made[:_LOOKED_UP]
        shared = Counter(n for key in keys for n in self._by_hash.get(key, ()))
        likely = (self._sketches[n] for n, count in shared.items() if count >= len(keys) * _LIKELY)
        if any(resemblance(made, other) >= NEAR for other in likely):
            return "nearly the same as another"
        self._exact.add(exact)
        for key in keys:
            self._by_hash.setdefault(key, []).append(len(self._sketches))
        self._sketches.append(made)
        return ""


def sketch(words: list[str]) -> Sketch:
    """Return the smallest hashes of a text's runs of words."""
    runs = {" ".join(words[n : n + RUN_WORDS]) for n in range(max(1, len(words) - RUN_WORDS + 1))}
    hashes = (int.from_bytes(hashlib.blake2b(r.encode("utf-8", "replace"), digest_size=8).digest()) for r in runs)
    return tuple(nsmallest(KEPT, hashes))


def resemblance(left: Sketch, right: Sketch) -> float:
    """Estimate the share of runs that two texts have in common."""
    union = nsmallest(KEPT, {*left, *right})
    shared = set(left) & set(right)
    return sum(key in shared for key in union) / len(union)


# Benchmarks

_INSTANCE = re.compile(r"(?:^|__|/)([A-Za-z0-9_.-]+?)__([A-Za-z0-9_.-]+)-\d+$")


@cache
def _benchmarks() -> tuple[dict[str, re.Pattern[str]], list[str]]:
    known = tomllib.loads(Path(__file__).with_name("benchmarks.toml").read_text("utf-8"))
    patterns = {n: re.compile(rf"(?<![a-z0-9])(?:{p})", re.IGNORECASE) for n, p in known["names"].items()}
    return patterns, known["swe_bench_repositories"]


class Match(NamedTuple):
    """A benchmark, and what it was recognised by."""

    benchmark: str
    by: str
    """`data set`, `task`, or `repository`: a task may come of a repository, but need not."""


def benchmark_of(dataset: str | None, task: str | None, repository: str | None) -> Match | None:
    """Return the benchmark that a session's task is, or may be, from. What is trained on may not be measured on."""
    patterns, repositories = _benchmarks()
    for by, text in (("data set", dataset), ("task", task)):
        for name, pattern in patterns.items():
            if text and pattern.search(text):
                return Match(name, by)
    instance = _INSTANCE.search(task or "")
    if instance and f"{instance[1]}/{instance[2]}".lower() in repositories:
        return Match("SWE-bench", "task")
    path = (repository or "").lower().removesuffix(".git").rstrip("/")
    if any(path == name or path.endswith((f"/{name}", f":{name}")) for name in repositories):
        return Match("SWE-bench", "repository")
    return None


_OF_ONE = ("session_id", "agent", "model", "dataset", "task")


class TrainingSession(Struct, frozen=True, kw_only=True):
    session_id: str
    agent: str | None
    model: str | None
    dataset: str | None
    task: str | None
    has_transcript: bool | None
    """None for people's sessions."""
    rung: str
    """Outcome: `solved`, `failed`, or why nobody judged; empty for people's sessions."""
    benchmark: Match | None
    pass_audit: str = ""
    """Audit of a pass: `derived`, `retrieved`, `verifier_touched`, `cannot_tell`; empty without a pass."""

    @property
    def about(self) -> dict[str, Any]:
        """Columns beside the words of an example."""
        return {name: getattr(self, name) for name in _OF_ONE}


def training_rows(store: Store, ids: set[str]) -> list[TrainingSession]:
    from agentsignals.store.query import rows  # noqa: PLC0415  (DuckDB is loaded when something is written)

    names, values = rows(store, queries()["training.sessions"])
    found = (dict(zip(names, row, strict=True)) for row in values)
    return [
        TrainingSession(benchmark=benchmark_of(row["dataset"], row["task"], row.pop("repo")), **row)
        for row in found
        if row["session_id"] in ids
    ]


Kind = Literal["accepted", "preferences", "steps", "refusals"]
KINDS: tuple[str, ...] = get_args(Kind)
Example = dict[str, Any]
_TEMPLATE = re.compile(r"<\|[a-z_]+\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|<｜[^｜>]+｜>")
"""Marks of chat templates between messages (ChatML, Llama, Mistral, Gemma, DeepSeek)."""


class TrainingSet(Struct, kw_only=True):
    """Counts of one export."""

    kind: str
    considered: int
    examples: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Sessions, or pairs, by reason."""
    benchmarks: Counter[Match] = field(default_factory=Counter)
    cut_results: int = 0
    """Long results in the examples, of which the store keeps the ends."""
    templates: int = 0
    """Examples that contain marks of chat templates."""
    across_models: int = 0
    session_ids: set[str] = field(default_factory=set)
    agents: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    datasets: Counter[str] = field(default_factory=Counter)

    @property
    def rungs(self) -> tuple[str, ...]:
        return ("solved",) if self.kind == "accepted" else ("solved", "failed")

    @property
    def reasons(self) -> list[str]:
        """Reasons for leaving out, in words, most frequent first."""
        return [f"{n:,}: {reason}" for reason, n in self.left_out.most_common()]

    @property
    def contamination(self) -> list[str]:
        """Benchmarks of the examples, in words."""
        return [f"{match.benchmark}, by its {match.by}: {n:,} sessions" for match, n in self.benchmarks.most_common()]

    def count(self, rows: Sequence[TrainingSession], text: str, cut_results: int) -> None:
        """Count an example of these sessions, with its words."""
        self.examples += 1
        self.cut_results += cut_results
        self.templates += _TEMPLATE.search(text) is not None
        self.across_models += len({row.model for row in rows}) > 1
        for row in rows:
            self.session_ids.add(row.session_id)
            self.agents[row.agent or "not recorded"] += 1
            self.models[row.model or "not recorded"] += 1
            self.datasets[row.dataset or "not recorded"] += 1
            if row.benchmark is not None:
                self.benchmarks[row.benchmark] += 1


# Preference pairs

Held = tuple[TrainingSession, Conversation]


def with_both_outcomes(rows: Sequence[TrainingSession], made: TrainingSet) -> list[TrainingSession]:
    """Return the attempts at tasks that some solved and some failed. Attempts without a task are left out."""
    rungs: dict[tuple[str | None, str], set[str]] = {}
    for row in rows:
        if row.task is not None:
            rungs.setdefault((row.dataset, row.task), set()).add(row.rung)
    kept = []
    for row in rows:
        if row.task is None:
            made.left_out["its task is not recorded"] += 1
        elif len(rungs[row.dataset, row.task]) < 2:
            made.left_out[f"its task was only {row.rung}"] += 1
        else:
            kept.append(row)
    return kept


def preference_pairs(held: Sequence[Held], made: TrainingSet) -> Iterator[tuple[Example, str, list[Held]]]:
    """Yield pairs of a solved and a failed attempt with the same prompt. Each attempt is in one pair at most, so that
    no task weighs more than its attempts. Attempts of one model are paired first; those of two agents never, because
    tools and instructions differ."""
    groups: dict[tuple[str | None, ...], list[Held]] = {}
    for row, talk in sorted(held, key=lambda pair: pair[0].session_id):
        key = row.dataset, row.task, row.agent, json.dumps(talk.prompt, sort_keys=True)
        groups.setdefault(key, []).append((row, talk))
    for group in groups.values():
        left, matched = list(group), list[tuple[Held, Held]]()
        for same_model in (True, False):
            for solved in [pair for pair in left if pair[0].rung == "solved"]:
                failed = (pair for pair in left if pair[0].rung == "failed")
                other = next((pair for pair in failed if not same_model or pair[0].model == solved[0].model), None)
                if other is not None:
                    matched.append((solved, other))
                    left = [pair for pair in left if pair is not solved and pair is not other]
        if left:
            why = "no attempt of its agent with the other outcome is left that began with the same prompt"
            made.left_out[why] += len(left)
        for (better, chosen), (worse, rejected) in matched:
            sketches = [sketch(split_words(side.completion_text)) for side in (chosen, rejected)]
            if resemblance(*sketches) >= NEAR:
                made.left_out["pairs whose two sides are nearly the same"] += 1
                continue
            sides = {"chosen": chosen.completion, "rejected": rejected.completion}
            ids = {"session_id": better.session_id, "rejected_session_id": worse.session_id}
            models = {"model": better.model, "rejected_model": worse.model}
            example = {"prompt": chosen.prompt, **sides, **better.about, **ids, **models}
            yield example, f"{chosen.text}\n{rejected.completion_text}", [(better, chosen), (worse, rejected)]


# Refusals


def refusal_pairs(
    session: Session, row: TrainingSession, made: TrainingSet
) -> Iterator[tuple[Example, str, list[Held]]]:
    """Yield pairs of an edit or plan that the person refused and the one that came in its place.

    Each side is the call alone: the agent's words before the second one answer the person, which would tell the sides
    apart. What the person said is a column of its own, and no part of the prompt."""
    found = refusals(session)
    if not found:
        made.left_out["no edit or plan was refused"] += 1
    whole = moves(session) if found else []
    for refusal in found:
        at = next((n for n, move in enumerate(whole) if any(c.call is refusal.refused for c in move.calls)), None)
        before = [move for move in whole[:at] if move.text.strip() or move.calls] if at is not None else []
        if refusal.kept is None or refusal.words is None:
            made.left_out[f"{refusal.rule.replace('_', ' ')}: {refusal.why_no_pair}"] += 1
        elif not any(move.role == "user" for move in before):
            made.left_out[f"{refusal.rule.replace('_', ' ')}: no prompt is recorded"] += 1
        else:
            sides = {"chosen": [_alone(refusal.kept)], "rejected": [_alone(refusal.refused)]}
            prompt = [message for move in before for message in messages(move)]
            said = {"rule": refusal.rule, "words": refusal.words.text or ""}
            text = f"{refusal.refused.arguments}\n{refusal.kept.arguments}"
            results = [call.result for move in before for call in move.calls if call.result is not None]
            cut = sum(result.n_chars > len(result.text or "") for result in results)
            held = Conversation(prompt=prompt, moves=[], cut_results=cut)
            yield {"prompt": prompt, **sides, **said, **row.about}, text, [(row, held)]


def _alone(call: ToolCall) -> Message:
    made = {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": arguments(call)}}
    return {"role": "assistant", "content": "", "tool_calls": [made]}


# Steps

WORKED: frozenset[CallOutcome] = frozenset(("done",))
FAILED: frozenset[CallOutcome] = frozenset(("error_result", "timed_out"))
"""Outcomes of a failed step: the tool refused, or did not end. A non-zero exit is none (failing tests are often what
was asked for), nor is an empty search, nor what a person refused or stopped."""


def stepwise(held: Conversation) -> dict[str, Any] | str:
    """Return prompt, completions and labels of a conversation, as process reward models are trained
    (https://huggingface.co/docs/trl/dataset_formats#stepwise-supervision); or the reason why there are none.

    A completion reaches from the results of the last labelled step to the next labelled step; unlabelled steps between
    go before it. The results that a label was read from begin the next completion, so that no step holds its own label.
    What follows the last labelled step is left out.
    """
    completions: list[str] = []
    labels: list[bool] = []
    waiting: list[str] = []
    for move in held.moves:
        label = label_of(move)
        if label is None:
            waiting.append(as_text([move]))
            continue
        completions.append("\n".join(text for text in (*waiting, action_text(move)) if text))
        labels.append(label)
        waiting = [result_text(move)]
    if not labels:
        return "of no step it is known whether its calls worked"
    return {"prompt": prompt_text(held.prompt), "completions": completions, "labels": labels}


def label_of(move: Move) -> bool | None:
    """Return True or False when the results tell of all calls of a step whether they worked; else None."""
    outcomes = [call.call.outcome for call in move.calls]
    if any(outcome in FAILED for outcome in outcomes):
        return False
    return True if outcomes and all(outcome in WORKED for outcome in outcomes) else None


# The card

LOSES = (
    "tool declarations: logs contain only calls, so there is no column `tools`",
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
    "refusals": "Edits and plans of coding agents: `rejected` was refused by the person, `chosen` came in its place and"
    " was let through; for preference optimisation (DPO and its like). `words` is what the person said to the refused"
    " one, which the agent knew when it made the chosen one. Of pairs that were read, these were right: "
    + "; ".join(
        f"{rule.replace('_', ' ')} {part_text(right, read, *(wilson(right, read) or (None, None)))}"
        for rule, (right, read) in READ.items()
    )
    + ".",
}
_COLUMNS: dict[str, list[dict[str, str]]] = {
    "accepted": [{"name": "messages", "list": "json"}],
    "preferences": [{"name": name, "list": "json"} for name in ("prompt", "chosen", "rejected")],
    "steps": [
        {"name": "prompt", "dtype": "string"},
        {"name": "completions", "list": "string"},
        {"name": "labels", "list": "bool"},
    ],
    "refusals": [
        *({"name": name, "list": "json"} for name in ("prompt", "chosen", "rejected")),
        *({"name": name, "dtype": "string"} for name in ("rule", "words")),
    ],
}
_ABOUT = {
    **dict.fromkeys(("accepted", "steps", "refusals"), _OF_ONE),
    "preferences": (*_OF_ONE, "rejected_session_id", "rejected_model"),
}
_TASKS = {"accepted": "text-generation"} | dict.fromkeys(KINDS[1:], "reinforcement-learning")
_OF_ATTEMPTS = ("accepted", "preferences")


def training_card(made: TrainingSet, choice: Choice, sources: list[str]) -> str:
    """Return the README of the folder."""
    facts = {
        "task_categories": [_TASKS[made.kind]],
        "tags": ["coding-agents", "agent-traces", "agentsignals", "trl"],
        "size_categories": [size_category(made.examples)],
        # Declared: of arguments that differ from call to call a table would make one, filled with nothing.
        "dataset_info": {
            "features": [*_COLUMNS[made.kind], *({"name": n, "dtype": "string"} for n in _ABOUT[made.kind])]
        },
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train.jsonl"}]}],
    }
    counted: list[str] = []
    for name, counts in {"agent": made.agents, "model": made.models, "data set of the task": made.datasets}.items():
        counted += [*markdown_table((name, "sessions"), counts.most_common(30)), ""]
    benchmarks = ["None was recognised."]
    if choice.without_benchmarks:
        benchmarks = ["Sessions of known benchmarks were left out."]
    elif made.benchmarks:
        benchmarks = ["**A model trained on this can't be measured on these:**", ""]
        benchmarks += [f"- {line}" for line in made.contamination]
    unearned = [f"No pass is here that is known not to be earned. {CAVEAT}"] if made.kind in _OF_ATTEMPTS else []
    left_out = markdown_table(("reason", "sessions or pairs"), made.left_out.most_common())
    return data_card(
        "training_card.md",
        choice,
        sources,
        f"Coding agents: {made.kind}",
        facts,
        about=_IS[made.kind],
        examples=made.examples,
        considered=made.considered,
        schema=SCHEMA_VERSION,
        counts=counted,
        left_out=left_out or ["Nothing."],
        benchmarks=benchmarks,
        losses=[f"- {loss}" for loss in (*LOSES, *unearned)],
        cut_results=made.cut_results,
        templates=made.templates,
        marks=TEMPLATES,
    )


def write(store: Store, ids: list[str], folder: Path, choice: Choice, done: Exported) -> None:
    """Write README.md and data/train.jsonl. ExportError where no session has anything to train on."""
    if choice.kind not in KINDS:
        raise UsageError(f"{choice.kind!r} is not a kind of training data.", f"Use --kind {' | '.join(KINDS)}.")
    made = TrainingSet(kind=choice.kind, considered=len(ids))
    target = folder / "data" / "train.jsonl"
    empty_folder(folder)
    private_files.make_folder(target.parent)
    write_rows(target, _examples(store, training_rows(store, set(ids)), choice, made), choice.redactor)
    if not made.examples:
        target.unlink()
        target.parent.rmdir()
        raise ExportError(f"No session yields a training example of the kind {made.kind!r}.", "; ".join(made.reasons))
    card = training_card(made, choice, sources_of(store, made.session_ids))
    done.files, done.sessions, done.loses = 2, sum(made.agents.values()), list(LOSES)
    done.tables = {f"{made.kind} examples": made.examples}
    # What the person should know.
    cut_results = f"{made.cut_results:,} long results of tools are there by their ends alone, as the store keeps them"
    two_models = f"{made.across_models:,} pairs are of two models: `model` and `rejected_model` say which"
    done.notes = [f"left out: {reason}" for reason in made.reasons]
    done.notes += [f"of a known benchmark: {line}" for line in made.contamination]
    for applies, note in (
        (made.benchmarks, "what is trained on can't be measured on: --without-benchmarks leaves them out"),
        (made.cut_results, cut_results),
        (made.across_models, two_models),
        (made.templates, f"{made.templates:,} examples {TEMPLATES}"),
        (made.kind in _OF_ATTEMPTS, f"no pass is trained on that is known not to be earned. {CAVEAT}"),
    ):
        if applies:
            done.notes.append(note)
    finish_folder(folder, card, choice, done)


def _examples(store: Store, rows: list[TrainingSession], choice: Choice, made: TrainingSet) -> Iterator[Example]:
    """Yield the training examples of sessions that fit the choice; the others are counted by reason."""
    wanted = []
    for row in rows:
        if why := _why_unwanted(row, choice, made):
            made.left_out[why] += 1
        else:
            wanted.append(row)
    if made.kind == "preferences":
        wanted = with_both_outcomes(wanted, made)
    by_id = {row.session_id: row for row in wanted}

    def conversations() -> Iterator[Held]:
        for n, session in enumerate(store.read(set(by_id))):
            choice.tick("writing", n, len(by_id))
            talk = training_conversation(session)
            if isinstance(talk, str):
                made.left_out[talk] += 1
            else:
                yield by_id[session.session_id], talk

    def single() -> Iterator[tuple[Example, str, list[Held]]]:
        for row, talk in conversations():
            example: Example | str = {"messages": [*talk.prompt, *talk.completion]}
            if made.kind == "steps":
                example = stepwise(talk)
            if isinstance(example, str):
                made.left_out[example] += 1
            else:
                yield example | row.about, talk.text, [(row, talk)]

    def refused() -> Iterator[tuple[Example, str, list[Held]]]:
        for n, session in enumerate(store.read(set(by_id))):
            choice.tick("writing", n, len(by_id))
            yield from refusal_pairs(session, by_id[session.session_id], made)

    seen = DuplicateFilter()
    found = refused() if made.kind == "refusals" else single()
    for example, text, sides in preference_pairs(list(conversations()), made) if made.kind == "preferences" else found:
        # As it is given away: copies that differ in a name or a key that is masked are the same.
        if why := seen.why_left_out(redacted(text) if choice.redactor else text):
            made.left_out[why] += 1
        else:
            made.count([row for row, _ in sides], text, sum(talk.cut_results for _, talk in sides))
            yield example


def _why_unwanted(row: TrainingSession, choice: Choice, made: TrainingSet) -> str:
    """Return why a session is not used for training; empty if it is."""
    if row.has_transcript is False:
        return "the conversation was not collected"
    if choice.without_benchmarks and row.benchmark is not None:
        return f"of a known benchmark ({row.benchmark.benchmark}, by its {row.benchmark.by})"
    if made.kind not in _OF_ATTEMPTS:
        return ""
    if not row.rung:
        return "no verdict: a person's session"
    if row.rung not in made.rungs:
        return f"its outcome: {row.rung.replace('_', ' ')}"
    if row.pass_audit in ("retrieved", "verifier_touched"):
        return f"its pass was not earned: {row.pass_audit.replace('_', ' ')}"
    return ""


WRITER = WholeWriter(
    name="training",
    describes="examples to train a model on (--kind accepted, preferences or steps), for datasets and TRL",
    put=write,
    redacts=True,
)
