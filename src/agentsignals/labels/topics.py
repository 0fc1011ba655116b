"""Topics of prompts: clusters of similar prompts, kept as labels of the task `topic` by `clusters`.

Prompts become points (tf-idf, or an embedder's vectors), points become clusters (k-means; UMAP and HDBSCAN on request),
clusters get names (their telling words, and a model's on request).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from agentsignals.errors import LabelError, UsageError, install_command
from agentsignals.ingest.measure import store_vectors
from agentsignals.labels.agreement import EXAMPLES, Example, excerpt
from agentsignals.labels.answers import Answers, Outcome, now
from agentsignals.labels.labellers import Labeller
from agentsignals.labels.prompting import Question, made
from agentsignals.labels.tasks import Unfit, mark, read_as
from agentsignals.labels.tasks import prompt as task_prompt
from agentsignals.model import Absent, Label
from agentsignals.model.registry import no_such
from agentsignals.questions.prompts import Prompt, TopicPrompts
from agentsignals.questions.sql import WHERE_EACH_LIES, place_by_session
from agentsignals.stats import grouping
from agentsignals.stats.grouping import (
    NOISE,
    dense_groups,
    naming_words,
    point_groups,
    stable_groups,
    text_points,
)
from agentsignals.stats.intervals import SEED
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from agentsignals.store.sidecars import LabelRow
from agentsignals.words.vectors import NONE, Dense, is_model, parsed

NAMING = "topic_name"
CENTRAL = 100
"""Prompts that are shown of a topic, those in its middle (design/attribution.md#topics-of-swe-chat)."""
MOST_CHARS = 200
TOKENS = 300
FEWEST_WORDS, MOST_WORDS = 2, 12
"""Words of a name; 4 to 10 are asked for."""


class NameAnswer(Struct, forbid_unknown_fields=True):
    technologies: str
    activity: str
    name: str


class Named(Struct, kw_only=True):
    by: str
    names: int = 0
    kept: int = 0
    """Names out of answers of an earlier run."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    """Topics that got no name, by reason; the next run asks again."""


def _name(store: Store, by: Labeller, topics: Sequence[Topic], members: Sequence[list[Prompt]]) -> Named:
    """Give topics the names that a labeller writes, shown their words and prompts, the most central first. Those were
    masked before topics were made of them."""
    usage, names, lock = Named(by=by.name), dict[str, str](), threading.Lock()
    asked = []
    for topic, prompts in zip(topics, members, strict=True):
        lines = [f"Words: {', '.join(topic.words)}", "Messages:"]
        lines += [f"- {' '.join(prompt.text.split())[:MOST_CHARS]}" for prompt in prompts[:CENTRAL]]
        shown = "\n".join(lines)
        asked.append(made(by.name, NAMING, task_prompt(NAMING), shown, NameAnswer, tokens=TOKENS, read=name_in))
    answers = Answers(store.folder / sidecars.LABELS_FOLDER)

    def done(question: Question, outcome: Outcome) -> None:
        answers.put(question.key, by.name, question.task, outcome)
        with lock:
            usage.calls += outcome.calls
            usage.input_tokens += outcome.input_tokens
            usage.output_tokens += outcome.output_tokens
            if outcome.text is None:
                reason = outcome.failure or "no_answer"
                usage.failed[reason] = usage.failed.get(reason, 0) + 1
            else:
                names[question.key] = name_in(outcome.text)

    try:
        by_key = {question.key: question for question in asked}
        for key in by_key:
            outcome = answers.get(key)
            if outcome is not None and outcome.text is not None:
                with suppress(Unfit):  # what an older version of this code took for a name is asked again
                    names[key] = name_in(outcome.text)
                    usage.kept += 1
        by.ask([question for key, question in by_key.items() if key not in names], done)
    finally:
        answers.close()
        for topic, question in zip(topics, asked, strict=True):
            topic.name = names.get(question.key)
            usage.names += topic.name is not None
    return usage


def name_in(text: str) -> str:
    """The name in an answer, on one line. Unfit for what is none."""
    name = " ".join(read_as(NameAnswer, text).name.split())
    if not FEWEST_WORDS <= len(name.split()) <= MOST_WORDS:
        raise Unfit("invalid_answer", f"a name of {len(name.split())} words")
    return name


# -- Prompts that can have a topic

_PROMPTS = """
SELECT turns.session_id, turns.turn, turns.text, json_extract_string(told.value, '') AS language FROM turns
JOIN sessions USING (session_id) LEFT JOIN (
  SELECT session_id, turn, value FROM signals WHERE signal = 'chat.prompt_language' AND absent IS NULL
) AS told ON told.session_id = turns.session_id AND told.turn = turns.turn
WHERE turns.kind IN ('prompt', 'queued_prompt') AND turns.session_id IN {chosen} ORDER BY ALL
"""


def kept_prompts(store: Store, where: str) -> tuple[int, TopicPrompts]:
    """Return the number of prompts of the sessions that meet an SQL condition over `sessions`, and the ones that are
    compared. Prompts of eval runs are nobody's words."""
    chosen = f"(SELECT session_id FROM sessions WHERE ({where})) AND context <> 'eval'"  # noqa: S608  (the person's SQL)
    prompts = _dicts(store, _PROMPTS.format(chosen=chosen))
    return len(prompts), TopicPrompts(prompts, place_by_session(_dicts(store, WHERE_EACH_LIES)))


def _dicts(store: Store, asked: str) -> list[dict[str, object]]:
    names, values = rows(store, asked)
    return [dict(zip(names, row, strict=True)) for row in values]


# -- Clusters

K_MEANS, DENSITY = "k-means", "umap+hdbscan"
METHODS = (K_MEANS, DENSITY)
"""Clustering methods; the first is the default, whatever is installed."""
TFIDF = "tf-idf"
"""Embedder name where prompts are compared by the words they share."""
SMALLEST = 8
"""Prompts of a topic at least, for HDBSCAN."""
SHARE = 150 / 19_400
"""The smallest topic of SWE-chat in its prompts (design/attribution.md#topics-of-swe-chat): in a greater corpus a
topic takes more."""
SMALLEST_OF_KMEANS = 5
"""As in the study of topics."""
MOST = 40
"""Topics that k-means is asked for at most."""


class Clusters(Struct, frozen=True):
    """The topic of each prompt: 0 is the largest, -1 none."""

    method: str
    embedder: str
    of: list[int]
    fit: list[float]
    """Fit of each prompt to its topic: HDBSCAN's probability, or the silhouette of k-means."""
    smallest: int | None

    @property
    def count(self) -> int:
        return max(self.of, default=NOISE) + 1


def clustered(  # noqa: PLR0913  (what is grouped, how, and who is told)
    store: Store,
    texts: Sequence[str],
    spec: str,
    seed: int,
    tell: Callable[[str], None] | None = None,
    *,
    method: str = K_MEANS,
) -> Clusters | Absent:
    """The groups of these texts by the vectors of an embedder, kept in the store, or by the words they share. Texts
    without a word that another has are in no group. Absent where nothing can be grouped."""
    parsed(spec)
    vectors = store_vectors(store, spec, tell) if is_model(spec) else Absent("backend_disabled", NONE)
    points: Sequence[Sequence[float]]
    if isinstance(vectors, Absent):
        embedder, by_words = TFIDF, text_points(texts, seed)
        if isinstance(by_words, Absent):
            return by_words
        points = by_words
    else:  # what a model gives; only counts of words are sparse
        embedder = vectors.embedder.id
        points = [list(vector.values) for vector in cast("list[Dense]", vectors.of(texts))]
    with_words = [n for n, point in enumerate(points) if any(point)]
    if not with_words:
        return Absent("not_computable", "no word in two texts")
    compared, smallest = [points[n] for n in with_words], None
    if method == DENSITY:
        smallest = max(SMALLEST, round(SHARE * len(compared)))
        dense = dense_groups(compared, smallest, seed)
        if isinstance(dense, Absent):
            return dense
        groups, fits = dense.of, dense.probability
    else:
        means = point_groups(compared, min(MOST, max(2, round(math.sqrt(len(compared) / 2)))), seed)
        if isinstance(means, Absent):
            return means
        groups, fits = stable_groups(means.of, means.fit, SMALLEST_OF_KMEANS), means.fit
    of, fit = [NOISE] * len(texts), [0.0] * len(texts)
    for n, group, near in zip(with_words, groups, fits, strict=True):
        of[n], fit[n] = group, near
    return Clusters(method, embedder, of, fit, smallest)


# -- Labels

TASK, LABELLER = "topic", "clusters"
VERSION = 4
"""Version of the method; raise it when the same prompts would get other topics."""
FEWEST = 40
NO_TOPIC = "no topic"
_WORDS = 4


class Topic(Struct, kw_only=True):
    number: int
    n: int
    sessions: int
    words: list[str]
    """Words that distinguish it, by class-based tf-idf."""
    examples: list[Example]
    """The prompts that fit best, of different sessions."""
    name: str | None = None
    """A model's, if one was asked."""


class Summary(Struct, kw_only=True):
    """Result of a run. Every prompt is in `topics`, in `noise`, or counted in `left_out` by reason."""

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
    """Share of the prompts that were not compared."""
    noise: int
    noise_share: float
    """Share of the compared prompts."""
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
        raise UsageError(*no_such("method", method, METHODS))
    if namer is not None and namer.model is None:
        raise UsageError(f"{namer.name} cannot name topics.", "Use --names openai:MODEL@URL.")
    n_prompts, kept = kept_prompts(store, where)
    if len(kept.prompts) < FEWEST:
        raise LabelError(
            f"{len(kept.prompts):,} prompts have enough words to be grouped into topics; {FEWEST} are needed.",
            f"Left out: {', '.join(f'{n:,} {reason}' for reason, n in kept.left_out.most_common())}."
            if kept.left_out
            else "Analyze more sessions.",
        )
    spec = store.manifest.embedder if embedder is None else embedder
    made = clustered(store, [prompt.text for prompt in kept.prompts], spec, seed, tell, method=method)
    if isinstance(made, Absent):
        reason, advice = _MISSING.get(made.detail or "", (made.detail, "Analyze more sessions."))
        raise LabelError(f"No topics were found: {reason}.", advice.format(install_command("topics")))
    prompts = kept.prompts
    members: list[list[Prompt]] = [[] for _ in range(made.count)]
    """By topic, those that fit best first."""
    for n in sorted(range(len(prompts)), key=lambda n: (-made.fit[n], n)):
        if made.of[n] != NOISE:
            members[made.of[n]].append(prompts[n])
    texts, places = [prompt.text for prompt in prompts], [prompt.place for prompt in prompts]
    words = naming_words(texts, made.of, _WORDS, places)
    noise = made.of.count(NOISE)
    how = [VERSION, made.method, made.embedder, seed, made.smallest]
    summary = Summary(
        task=TASK,
        labeller=LABELLER,
        method=made.method,
        embedder=made.embedder,
        seed=seed,
        smallest=made.smallest,
        version=mark(msgspec.json.encode(how).decode()),
        prompts=n_prompts,
        compared=len(prompts),
        left_out_share=1 - len(prompts) / n_prompts,
        noise=noise,
        noise_share=noise / len(prompts),
        topics=[
            Topic(
                number=number,
                n=len(of),
                sessions=len({prompt.row["session_id"] for prompt in of}),
                words=words[number],
                examples=_examples(of),
            )
            for number, of in enumerate(members)
        ],
        left_out=dict(kept.left_out),
    )
    try:
        if namer is not None and summary.topics:
            summary.naming = _name(store, namer, summary.topics, members)
    finally:  # a server that gives up takes the names, not the topics
        summary.file = str(sidecars.write_labels(store.folder, TASK, LABELLER, _rows(summary, prompts, made)))
    return summary


_MISSING = {
    grouping.MISSING.detail: ("NumPy is not installed", "Install it: {}"),
    grouping.UMAP_MISSING.detail: (
        "umap-learn is not installed",
        f"Install it: {{}}. Or leave --method out: {K_MEANS} only needs NumPy.",
    ),
}


def _examples(prompts: list[Prompt]) -> list[Example]:
    of_session: dict[str, Example] = {}
    for prompt in prompts:
        session = str(prompt.row["session_id"])
        of_session.setdefault(session, Example(session, int(prompt.row["turn"]) + 1, excerpt(prompt.text)))
        if len(of_session) == EXAMPLES:
            break
    return list(of_session.values())


def _rows(summary: Summary, prompts: list[Prompt], made: Clusters) -> list[LabelRow]:
    """Return the topic of each prompt as a label to store."""
    created_at = now()
    rows = []
    common = {"method": summary.method, "seed": summary.seed}
    counts = {
        "topics": len(summary.topics),
        "compared": summary.compared,
        "noise_share": round(summary.noise_share, 4),
    }
    for prompt, number, fit in zip(prompts, made.of, made.fit, strict=True):
        topic = summary.topics[number] if number != NOISE else None
        detail: dict[str, Any] = {**common, "fit": round(fit, 4), **counts}
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
