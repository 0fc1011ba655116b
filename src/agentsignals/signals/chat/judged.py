"""What takes a reader to say, a person or a model that read the session: its success, persona, intents, topics.

Each value is a label's, of the task named: `agentsignals label TASK --by LABELLER` makes them.
"""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import RULES, Absent, Label, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.judgements import NO_JUDGE, label_detail, session_label
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import head

_INTENTS: tuple[tuple[str, str], ...] = (
    ("git", "commit push pull rebase merge cherry-pick stash branch tag pr checkout"),
    ("test", "test tests e2e coverage pytest"),
    ("debug", "fix debug reproduce investigate diagnose crash crashes broken error fails failing bug"),
    ("refactor", "refactor rename simplify clean cleanup extract split move restructure dedupe tidy"),
    ("understand", "explain what why how where which who understand describe show summarize summarise is are does"),
    ("connect", "connect integrate configure deploy install setup migrate wire"),
    ("create_new_code", "add create implement build write make generate introduce support"),
)
"""The words of each intent, in the order that settles which counts (design/signals.md#intent)."""
_BY_WORD = {word: name for name, words in reversed(_INTENTS) for word in words.split()}
_FIRST_WORDS = 12
"""How far into a prompt its main verb is looked for."""


def intent_of(turn: Turn) -> tuple[str, str]:
    """The intent that a prompt's first telling word has, and the word; `other` and nothing where none tells."""
    for word in head(turn.text).lower().replace("/", " ").split()[:_FIRST_WORDS]:
        plain = word.strip(".,:;!?()*")
        if plain in _BY_WORD:
            return _BY_WORD[plain], plain
    return "other", ""


def _value(view: SessionView, why: Evidence, task: str) -> Measured | Absent:
    label = session_label(view, why, task)
    return label if isinstance(label, Absent) else Measured(label.value, label_detail(label))


def _number(view: SessionView, why: Evidence, task: str) -> Measured | Absent:
    label = session_label(view, why, task)
    if isinstance(label, Absent):
        return label
    if label.number is None:
        return Absent("parse_error", "label without a number")
    return Measured(label.number, label_detail(label))


@signal(
    "chat.session_success_score",
    type="int",
    unit="score",
    origin="swe-chat",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="How well the session ended, over five dimensions.",
    pitfalls="Heavily skewed to the high end in the paper; people agree with each other at an ICC of .50.",
)
def session_success_score(view: SessionView, why: Evidence) -> Measured | Absent:
    """A judge's score of 0 to 100: goal, final state, efficiency, quality and experience, the ending weighing most."""
    return _number(view, why, "session_success")


@signal(
    "chat.user_persona",
    type="enum",
    unit="label",
    origin="swe-chat",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="How the person steers: by correcting, by leaving open, by changing their mind.",
    pitfalls="Mostly `other` outside Claude Code in the published data.",
)
def user_persona(view: SessionView, why: Evidence, user_turn_count: int) -> Measured | Absent:
    """The person's way of working: nitpicker, vague_requester, mind_changer or other; other below two turns."""
    if user_turn_count < 2:
        return Measured("other", {"method": "fewer than two turns"})
    return _value(view, why, "persona")


@signal(
    "chat.prompt_intent",
    type="enum",
    unit="label",
    level="turn",
    origin="swe-chat",
    source="llm_judge",
    priority="P2",
    why="What people ask agents for.",
    pitfalls="Without a judge a table of words decides (method regex): it knows English, and the first verb it finds.",
)
def prompt_intent(view: SessionView, why: Evidence) -> list[Measured]:
    """What a prompt asks for: git, test, debug, refactor, understand, connect, create_new_code or other."""
    judged = {judgement.turn: judgement for judgement in view.judgements("prompt_intent") if judgement.turn is not None}
    intents = []
    for turn in view.turns:
        label = judged.get(turn.turn)
        if label is not None:
            method = "regex" if label.labeller == RULES else "judge"
            intents.append(Measured(label.value, {"method": method, **label_detail(label)}))
        else:
            intent, words = intent_of(turn)
            if words:
                why.match(turn, intent, words)
            intents.append(Measured(intent, {"method": "regex"}))
    return intents


@signal(
    "chat.prompt_topic_cluster",
    type="int",
    unit="cluster",
    level="turn",
    origin="swe-chat",
    source="embedding",
    priority="P3",
    status="needs a judge",
    why="What prompts are about, across a corpus.",
    pitfalls="Clusters follow projects as much as activities; -1 is noise. Numbers mean nothing across runs.",
)
def prompt_topic_cluster(view: SessionView, why: Evidence) -> list[Measured | Absent] | Absent:
    """The cluster a prompt falls into in the last topic run over the store; -1 where it falls into none."""
    topics = {judgement.turn: judgement for judgement in view.judgements("topic") if judgement.turn is not None}
    if not topics:
        return NO_JUDGE
    return [_cluster(topics.get(turn.turn)) for turn in view.turns]


def _cluster(label: Label | None) -> Measured | Absent:
    if label is None or label.number is None:
        return Absent("not_applicable", "not_clustered")
    return Measured(int(label.number), label_detail(label))


@signal(
    "chat.repo_domain",
    type="str",
    unit="label",
    origin="swe-chat",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="What kind of software the repository is.",
    pitfalls="A label of the repository, repeated on each of its sessions.",
)
def repo_domain(view: SessionView, why: Evidence) -> Measured | Absent:
    """The domain of the session's repository, as a judge named it."""
    return _value(view, why, "repo_domain")
