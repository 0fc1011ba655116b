"""What prompts are about: groups of prompts that share words, named by the words that tell them apart (SWE-chat)."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from agentsignals.model import Absent
from agentsignals.questions import sql
from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import DOMINANT, ONE_PLACE, bar, chart, clustered_share, count, ranked, table
from agentsignals.questions.formatting import with_bound
from agentsignals.questions.label_shares import NONE, PUSHBACK, rules_recall_text
from agentsignals.questions.prompts import Prompt, TopicPrompts
from agentsignals.questions.question import Chart, Finding, Inputs, NoSessions, Outcome, Row, Study, Table
from agentsignals.stats.grouping import (
    INSTALL,
    MISSING,
    NOISE,
    Groups,
    naming_words,
    stable_groups,
    text_groups,
    words_of,
)
from agentsignals.stats.intervals import SEED, median

FEWEST, SMALLEST, MOST_TOPICS = 40, 5, 40
"""Prompts that are grouped at all; prompts of a topic; topics."""
_NAMING, _EXAMPLES, _EXAMPLE_CHARS = 4, 3, 160
_TIME, _CUT, _LANGUAGE = "chat.turn_autonomy_s", "chat.hard_interruption", "chat.prompt_language"

_UNLISTED = "What was left out is counted by reason alone."


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    kept = TopicPrompts(inputs.rows["prompts"], places)
    prompts = kept.prompts
    if len(prompts) < FEWEST:
        return Outcome(limits=[f"{len(prompts):,} prompts have words enough for a topic: {FEWEST} are needed."])
    wanted = min(MOST_TOPICS, max(2, round(math.sqrt(len(prompts) / 2))))
    groups = text_groups([prompt.text for prompt in prompts], wanted)
    if isinstance(groups, Absent):
        return Outcome(limits=[INSTALL if groups is MISSING else f"There are no topics: {groups.detail}."])
    of = stable_groups(groups.of, groups.fit, SMALLEST)
    if max(of) < 0:
        return Outcome(limits=["No topic has five prompts that fit it."])
    names = [", ".join(words) or "without a common word" for words in _names(prompts, of)]
    return Outcome(
        _findings(inputs, prompts, of, names, places),
        [_table(prompts, of, names, groups), _examples(prompts, of, names, groups), _left_out(kept)],
        [_chart(prompts, of, names)],
        [
            f"Topics are groups of words, and their number is a rule, the root of half the prompts: {wanted} here."
            " Another number, or another seed, cuts them otherwise. Some are projects rather than activities: see the"
            " largest place.",
            "Prompts are compared by the words they share, not by what they mean; English prompts alone.",
        ],
    )


def _names(prompts: list[Prompt], of: list[int]) -> list[list[str]]:
    """A word that one place alone uses names a project, not a topic."""
    used: dict[str, set[str]] = {}
    for prompt in prompts:
        for word in set(words_of(prompt.text)):
            used.setdefault(word, set()).add(prompt.place)
    shared = {word for word, where in used.items() if len(where) > 1}
    return naming_words([prompt.text for prompt in prompts], of, _NAMING, shared)


def _findings(
    inputs: Inputs, prompts: list[Prompt], of: list[int], names: list[str], places: dict[str, str]
) -> list[Finding]:
    parts = [(prompt.row["session_id"], float(topic == NOISE), 1) for prompt, topic in zip(prompts, of, strict=True)]
    whole, compared = len(inputs.rows["prompts"]), "prompts compared"
    how = f"of {whole:,} prompts; tf-idf, {len(names)} of the groups that k-means made, seed {SEED}"
    near = "as near to another topic as to its own, or in a group of under five; SWE-chat: 42.6%, by another method"
    return [
        count(max(of) + 1, len(prompts), evidence=parts).finding(
            "topics.count", "Topics", compared, how, unit="topics"
        ),
        clustered_share(parts, places).finding(
            "topics.noise", "Prompts without a topic", compared, near, unit="share of prompts"
        ),
        count(names[0], of.count(0), "text", evidence=_sessions_of(_members(prompts, of, 0))).finding(
            "topics.largest", "Largest topic", "prompts of that topic", unit="words"
        ),
    ]


def _members(prompts: list[Prompt], of: list[int], topic: int) -> list[Prompt]:
    return [prompt for prompt, t in zip(prompts, of, strict=True) if t == topic]


def _sessions_of(prompts: list[Prompt]) -> list[str]:
    return [prompt.row["session_id"] for prompt in prompts]


def _largest(prompts: list[Prompt]) -> float:
    return max(Counter(prompt.place for prompt in prompts).values()) / len(prompts)


def _table(prompts: list[Prompt], of: list[int], names: list[str], groups: Groups) -> Table:
    rows: list[list[Any]] = []
    behind = []
    for topic in [*range(len(names)), *([NOISE] if NOISE in of else [])]:
        members = _members(prompts, of, topic)
        later = [p.row["pushback"] for p in members if p.row["pushback"] is not None]
        objections = sum(value != NONE for value in later)
        times = [p.row["seconds"] for p in members if p.row["seconds"] is not None]
        cut = sum(bool(p.row["cut"]) for p in members) / len(members)
        largest = _largest(members)
        behind.append(_sessions_of(members))
        fit = [f for f, t in zip(groups.fit, of, strict=True) if t == topic]
        rows.append(
            [
                *(names[topic] if topic >= 0 else "(no topic)", len(members), len(members) / len(prompts)),
                *(len({p.row["session_id"] for p in members}), len({p.place for p in members}), largest),
                *(
                    math.fsum(fit) / len(fit),
                    with_bound(objections / len(later) if later else None, True),
                    cut,
                    median(times),
                ),
                ONE_PLACE if largest > DOMINANT and topic >= 0 else "",
            ]
        )
    return table(
        "topics.topics",
        "Topics of prompts",
        "topic topic, by its words | n prompts:count | share:share | sessions:count | places:count"
        " | largest largest place:share | fit silhouette:number | pushback objections among them:share"
        " | cut cut short:share | time median time:seconds | warning says little because",
        rows,
        n=len(prompts),
        of="prompts compared",
        evidence=behind,
        note="Named by class-based tf-idf, of words that two places use. Objections are counted among"
        f" prompts that are not the first, by a flag that is no share ({rules_recall_text()}).",
    )


def _examples(prompts: list[Prompt], of: list[int], names: list[str], groups: Groups) -> Table:
    """The prompts nearest to the middle of each topic, of different sessions where there are any."""
    rows = []
    for topic, name in enumerate(names):
        members = [(groups.distance[n], n) for n, t in enumerate(of) if t == topic]
        chosen: list[int] = []
        for _, n in sorted(members):
            if prompts[n].row["session_id"] not in {prompts[m].row["session_id"] for m in chosen}:
                chosen.append(n)
        chosen += [n for _, n in sorted(members) if n not in chosen]
        rows += [[name, _brief(prompts[n].text), prompts[n].row["session_id"]] for n in chosen[:_EXAMPLES]]
    return table(
        "topics.examples",
        "Prompts nearest to the middle of each topic",
        "topic | prompt | session:session",
        rows,
        n=len(prompts),
        of="prompts compared",
        evidence=[[row[2]] for row in rows],
        note="As compared: without code, paths and names. Secrets and addresses hidden if recognised.",
    )


def _brief(text: str) -> str:
    return text if len(text) <= _EXAMPLE_CHARS else text[: _EXAMPLE_CHARS - 1] + "…"


def _left_out(kept: TopicPrompts) -> Table:
    rows = [[reason, n] for reason, n in ranked(kept.left_out) if n]
    title, note = "Prompts that were not compared", "A place may have a tenth of the prompts, or twenty."
    n, of = kept.left_out.total(), "prompts left out"
    return table(
        "topics.left_out",
        title,
        "reason | n prompts:count",
        rows,
        n=n,
        of=of,
        evidence=NoSessions(_UNLISTED),
        note=note,
    )


def _chart(prompts: list[Prompt], of: list[int], names: list[str]) -> Chart | None:
    rows: list[Row] = []
    for topic, name in enumerate(names):
        members = _members(prompts, of, topic)
        tip = f"{name}: {len(members):,} of {len(prompts):,} prompts, in {len({p.place for p in members}):,} places"
        rows.append(bar(f"{topic + 1}. {name}", len(members), tip, evidence=_sessions_of(members)))
    return chart(
        "topics.sizes",
        "Topics of prompts",
        rows,
        bars(rows, "prompts"),
        n=len(prompts),
        of="prompts compared",
        note=f"{of.count(NOISE):,} have no topic",
    )


_SIGNALS = sql.of_turns(
    language=(_LANGUAGE, sql.WORD),
    pushback=(PUSHBACK, sql.WORD),
    seconds=(_TIME, sql.NUMBER),
    cut=(_CUT, sql.HAPPENED),
)
STUDY = Study(
    name="topics",
    order=160,
    title="Topics",
    question="What are prompts about?",
    queries={
        "prompts": f"WITH {_SIGNALS} SELECT session_id, turn, text, language, pushback, seconds, cut FROM turns"
        " LEFT JOIN of_turns USING (session_id, turn) WHERE kind IN ('prompt', 'queued_prompt')"
        " ORDER BY session_id, turn",
    },
    function=_outcome,
    context="product",
)
