"""What takes a reader to say, a person or a model that read the session. Each value is a label's, of the task named.

Where several labellers did a task, the one with most labels of it counts, then the youngest; the detail names it.
`agentsignals label TASK --by LABELLER` makes them.
"""

from __future__ import annotations

import msgspec

from agentsignals.catalog import Measured, signal
from agentsignals.model import RULES, Absent, Label, Turn
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import head

_NO_JUDGE = Absent("backend_disabled", "judge")
_SPOKE = "session without assistant text"


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


def _detail(label: Label) -> dict[str, object]:
    """Who said it, why, and what else."""
    more = msgspec.json.decode(label.detail) if label.detail else {}
    detail: dict[str, object] = {"labeller": label.labeller, "reason": label.reason, "model": label.model}
    if label.prompt_hash is not None:
        detail["prompt_hash"] = label.prompt_hash
    return {k: v for k, v in detail.items() if v is not None} | (more if isinstance(more, dict) else {})


def _of_session(view: SessionView, why: Evidence, task: str) -> Label | Absent:
    """The label of a whole session."""
    if not view.by_kind.get("text"):
        return Absent("not_applicable", _SPOKE)
    label = next((judgement for judgement in view.judgements(task) if judgement.turn is None), None)
    if label is None:
        return _NO_JUDGE
    why.rule(f"{label.labeller}: {label.value}" + (f" ({label.reason})" if label.reason else ""))
    return label


def _value(view: SessionView, why: Evidence, task: str) -> Measured | Absent:
    label = _of_session(view, why, task)
    return label if isinstance(label, Absent) else Measured(label.value, _detail(label))


def _number(view: SessionView, why: Evidence, task: str) -> Measured | Absent:
    label = _of_session(view, why, task)
    if isinstance(label, Absent):
        return label
    if label.number is None:
        return Absent("parse_error", "label without a number")
    return Measured(label.number, _detail(label))


@signal(
    "anticipation.task_paraphrase_accuracy",
    type="float",
    unit="similarity",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="The first restatement is the earliest sign of a misread task.",
    pitfalls="Agents often act without restating; then there is nothing to judge.",
)
def task_paraphrase_accuracy(view: SessionView, why: Evidence) -> Measured | Absent:
    """How completely and faithfully the agent's first restatement matches the request: a judge's 0 to 4, over 4."""
    return _number(view, why, "task_paraphrase_accuracy")


@signal(
    "anticipation.plan_optimality",
    type="enum",
    unit="label",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="Whether the first plan led where the work ended.",
    pitfalls="Judges are poor at this: calibrate against people's scores before using it.",
)
def plan_optimality(view: SessionView, why: Evidence, plan_steps_detected: int) -> Measured | Absent:
    """How the first explicit plan compares with the path that worked: optimal, suboptimal or wrong_direction."""
    if plan_steps_detected == 0:
        return Absent("not_applicable", "no_plan")
    return _value(view, why, "plan_optimality")


@signal(
    "anticipation.instruction_adherence",
    type="enum",
    unit="label",
    origin="Agent Signals",
    source="llm_judge",
    priority="P3",
    status="needs a judge",
    why="Whether what was asked for was done as asked.",
    pitfalls="Not the same as being right.",
)
def instruction_adherence(view: SessionView, why: Evidence) -> Measured | Absent:
    """How far the explicit instructions of the session were followed: full, partial, ignored or contradicted."""
    return _value(view, why, "instruction_adherence")


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
            intents.append(Measured(label.value, {"method": method, **_detail(label)}))
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
        return _NO_JUDGE
    return [_cluster(topics.get(turn.turn)) for turn in view.turns]


def _cluster(label: Label | None) -> Measured | Absent:
    if label is None or label.number is None:
        return Absent("not_applicable", "not_clustered")
    return Measured(int(label.number), _detail(label))


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
