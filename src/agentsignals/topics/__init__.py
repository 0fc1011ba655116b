"""What prompts are about, over a store: alike prompts in groups, kept as labels of the task `topic` by `clusters`.

Prompts become points (by the words they share, or by a model's vectors), points become groups (k-means, wherever it
runs; UMAP and HDBSCAN on request), groups get names (the words that tell them apart, and a model's on request).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.analysis.prompt_words import Kept, Prompt
from agentsignals.errors import LabelError, UsageError
from agentsignals.labels.answers import now
from agentsignals.labels.labellers import Labeller
from agentsignals.labels.task import mark
from agentsignals.model import Absent, Label
from agentsignals.stats import density, grouping
from agentsignals.stats.estimates import SEED
from agentsignals.stats.grouping import NOISE, naming_words, words_of
from agentsignals.store import Store, label_files
from agentsignals.store.label_files import LabelRow
from agentsignals.topics.clusters import K_MEANS, METHODS, Clusters, clustered
from agentsignals.topics.naming import Named, Naming
from agentsignals.topics.prompts import kept_prompts

TASK, LABELLER = "topic", "clusters"
VERSION = 3
"""Of how topics are made; raise it when the same prompts would come out otherwise."""
FEWEST = 40
"""Prompts that are grouped at all (as the study of topics has it)."""
NO_TOPIC = "no topic"
_WORDS = 4
EXAMPLES = 3
EXCERPT_CHARS = 160


class Example(Struct, frozen=True):
    """A prompt in the middle of its topic, secrets masked. The turn is counted from 1."""

    session: str
    turn: int
    excerpt: str


class Topic(Struct, kw_only=True):
    """A group of prompts."""

    number: int
    n: int
    sessions: int
    words: list[str]
    """Those that tell it from the others, by class-based tf-idf."""
    examples: list[Example]
    """The prompts that fit best, of different sessions."""
    name: str | None = None
    """A model's, if one was asked."""


class Summary(Struct, kw_only=True):
    """What a run found. Every prompt is in `topics`, in `noise`, or counted in `left_out` by its reason."""

    task: str
    labeller: str
    method: str
    embedder: str
    seed: int
    smallest: int | None
    """Prompts that the method needs for a group; None where it asks for a number of groups."""
    version: str
    prompts: int
    compared: int
    left_out_share: float
    """Of the prompts: those that were not compared."""
    noise: int
    noise_share: float
    """Of those compared."""
    topics: list[Topic]
    left_out: dict[str, int] = field(default_factory=dict)
    naming: Named | None = None
    file: str = ""


def label_topics(  # noqa: PLR0913  (what a person can say at the command line)
    store: Store,
    where: str = "true",
    *,
    embedder: str | None = None,
    method: str | None = None,
    seed: int = SEED,
    namer: Labeller | None = None,
    tell: Callable[[str], None] | None = None,
) -> Summary:
    """Groups the prompts of the sessions that meet an SQL condition over `sessions`, and replaces the store's labels of
    topics. `embedder`: another than the store's; one that counts words leaves it to tf-idf. Words, names and vectors
    are made of prompts that were masked. `method`: one of `METHODS`, else k-means. LabelError without NumPy, without
    umap-learn where it is asked for, and with too few prompts.
    """
    method = method or K_MEANS
    if method not in METHODS:
        raise UsageError(f"There is no method {method!r}.", f"The methods are: {', '.join(METHODS)}.")
    naming = None if namer is None else Naming(store, namer)
    n_prompts, kept = kept_prompts(store, where)
    if len(kept.prompts) < FEWEST:
        raise LabelError(
            f"{len(kept.prompts):,} prompts have words enough for a topic; {FEWEST} are needed.",
            f"Left out: {_counts(kept.left_out)}." if kept.left_out else "Take more sessions in.",
        )
    spec = store.manifest.embedder if embedder is None else embedder
    made = clustered(store, [prompt.text for prompt in kept.prompts], spec, seed, tell, method=method)
    if isinstance(made, Absent):
        reason, advice = _MISSING.get(made.detail or "", (made.detail, "Take more sessions in."))
        raise LabelError(f"There are no topics: {reason}.", advice)
    summary = _summary(kept, made, n_prompts, seed)
    try:
        if naming is not None and summary.topics:
            summary.naming = naming.usage
            _name(naming, summary, kept.prompts, made)
    finally:  # a server that gives up takes the names, not the topics
        summary.file = str(label_files.write(store.folder, TASK, LABELLER, _rows(summary, kept.prompts, made)))
    return summary


_MISSING = {
    grouping.MISSING.detail: ("NumPy is not installed", grouping.INSTALL),
    density.MISSING.detail: (
        "umap-learn is not installed",
        f"pip install 'agentsignals[topics]', or leave --method out: {K_MEANS} needs no more than NumPy.",
    ),
}


def _summary(kept: Kept, made: Clusters, prompts: int, seed: int) -> Summary:
    kept_prompts = kept.prompts
    sessions = [{p.row["session_id"] for p in _of(kept_prompts, made, n)} for n in range(made.count)]
    words = _words(kept_prompts, made.of) if made.count else []
    topics = [
        Topic(
            number=n,
            n=made.of.count(n),
            sessions=len(sessions[n]),
            words=words[n],
            examples=_examples(kept_prompts, made, n),
        )
        for n in range(made.count)
    ]
    noise = made.of.count(NOISE)
    how = [VERSION, made.method, made.embedder, seed, made.smallest]
    return Summary(
        task=TASK,
        labeller=LABELLER,
        method=made.method,
        embedder=made.embedder,
        seed=seed,
        smallest=made.smallest,
        version=mark(msgspec.json.encode(how).decode()),
        prompts=prompts,
        compared=len(kept_prompts),
        left_out_share=1 - len(kept_prompts) / prompts,
        noise=noise,
        noise_share=noise / len(kept_prompts),
        topics=topics,
        left_out=dict(kept.left_out),
    )


def _words(prompts: list[Prompt], of: list[int]) -> list[list[str]]:
    """A word that one place alone uses names a project, not a topic."""
    used: dict[str, set[str]] = {}
    for prompt in prompts:
        for word in set(words_of(prompt.text)):
            used.setdefault(word, set()).add(prompt.place)
    vocabulary = {word for word, where in used.items() if len(where) > 1}
    return naming_words([prompt.text for prompt in prompts], of, _WORDS, vocabulary)


def _central(made: Clusters) -> list[int]:
    """Which prompts fit their topics best, the best first."""
    return sorted(range(len(made.fit)), key=lambda n: (-made.fit[n], n))


def _examples(prompts: list[Prompt], made: Clusters, number: int) -> list[Example]:
    of_session: dict[str, Example] = {}
    for prompt in (prompts[n] for n in _central(made) if made.of[n] == number):
        session = str(prompt.row["session_id"])
        line = " ".join(prompt.text.split())
        excerpt = line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"
        of_session.setdefault(session, Example(session, int(prompt.row["turn"]) + 1, excerpt))
        if len(of_session) == EXAMPLES:
            break
    return list(of_session.values())


def _name(naming: Naming, summary: Summary, prompts: list[Prompt], made: Clusters) -> None:
    """Gives topics their names by what lies in their middle."""
    central = _central(made)
    shown = [(t.words, [prompts[n].text for n in central if made.of[n] == t.number]) for t in summary.topics]
    for topic, name in zip(summary.topics, naming.names(shown), strict=True):
        topic.name = name


def _rows(summary: Summary, prompts: list[Prompt], made: Clusters) -> list[LabelRow]:
    created_at = now()
    rows = []
    for prompt, number, fit in zip(prompts, made.of, made.fit, strict=True):
        topic = summary.topics[number] if number != NOISE else None
        detail: dict[str, Any] = {
            "method": summary.method,
            "seed": summary.seed,
            "fit": round(fit, 4),
            "topics": len(summary.topics),
            "compared": summary.compared,
            "noise_share": round(summary.noise_share, 4),
        }
        if topic is not None and topic.name is not None and summary.naming is not None:
            detail |= {"name": topic.name, "named_by": summary.naming.by}
        value = NO_TOPIC if topic is None else ", ".join(topic.words) or "without a common word"
        made_of = Label(
            task=TASK,
            labeller=LABELLER,
            turn=prompt.row["turn"],
            value=value,
            prompt_hash=summary.version,
            model=summary.embedder,
            created_at=created_at,
            number=float(number),
            detail=msgspec.json.encode(detail).decode(),
        )
        rows.append(LabelRow(prompt.row["session_id"], made_of))
    return rows


def _of(prompts: list[Prompt], made: Clusters, number: int) -> list[Prompt]:
    return [prompt for prompt, topic in zip(prompts, made.of, strict=True) if topic == number]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{n:,} {reason}" for reason, n in counts.most_common())
