"""A labeller by word rules: no model, no network, deterministic."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from agentsignals.errors import UsageError
from agentsignals.labels.labellers import Kind, LocalLabeller
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.model import RULES, Absent, Session, Turn
from agentsignals.signals import catalog
from agentsignals.views.session import CollectedEvidence, SessionView
from agentsignals.words.lexicon import acceptance, corrections, failure_report, head, rejection
from agentsignals.words.text import lowered

_FRUSTRATION = re.compile(
    r"\b(?:wtf|ffs|fml|smh|ugh{1,20}|a{1,20}r{1,20}g{1,9}h{1,20}|come on|seriously\?|why would you"
    r"|why the (?:hell|heck|fuck)|for fuck'?s sake|(?:fucking|bloody) hell|idiot"
    r"|this is (?:ridiculous|terrible|horrible|awful|stupid|a mess|garbage|useless)"
    r"|that'?s (?:horrible|terrible|awful|ridiculous|stupid)|frustrat\w{1,9}|annoying|annoyed|useless|waste of time"
    r"|still (?:broken|wrong|not (?:quite )?(?:working|fixed|right))|i (?:already|just) (?:told|said|asked)"
    r"|how many times|not what i (?:asked|wanted|said|meant)|you keep \w{1,20}ing"
    r"|stop (?:doing|adding|making|changing))(?!\w)"
)
_PRAISE = re.compile(
    r"\b(?:perfect(?:ly)?|awesome|excellent|amazing|lovely|brilliant|fantastic|wonderful|beautiful(?:ly)?"
    r"|great (?:job|work|stuff|catch|idea|point)|(?:good|nice) (?:job|work|catch|one|stuff)|well done"
    r"|love (?:it|this|that)|i like (?:it|this|that|how)|thank(?:s| you)|thx|cheers"
    r"|works? (?:great|perfectly|beautifully|like a charm)|looks? (?:great|good|awesome|perfect|amazing)"
    r"|that'?s (?:great|awesome|perfect|excellent))\b"
    r"|(?:\A|[.!\n] {0,9})(?:great|nice|cool|sweet|yay|wo{2,9}ho{2,9}|lgtm|yes!)[!,. ]"
)
_HEAT = re.compile(r"!!|\?\?|\?!|!\?|\b(?:fuck|shit|damn|crap|bullshit)\w{0,9}\b")
"""Marks that make an objection NEGATIVE. Alone they mean nothing: swearing is how developers talk (agent-traces)."""
_ORDER = re.compile(r"(?:commit|push|merge|ship|done)\b")
"""Orders that accept without praise."""


def sentiment_of(text: str, kind: str = "prompt") -> tuple[str, str, str]:
    """Return NEGATIVE, POSITIVE or NEUTRAL, the rule that decided, and the words it matched.

    Frustration with the agent is NEGATIVE, and so is an objection made with heat; praise without either is POSITIVE.
    Plain orders, reports, corrections and questions are NEUTRAL, whatever the language they are in.
    """
    low = lowered(head(text))
    vexed = _FRUSTRATION.search(low)
    if vexed:
        return "NEGATIVE", "frustration", vexed[0]
    objection = rejection(text, kind) or next((wording for _, wording in corrections(text, kind)), None)
    objection = objection or failure_report(text, kind)
    heated = _HEAT.search(low) if objection else None
    if heated:
        return "NEGATIVE", "objection with heat", f"{objection} … {heated[0]}"
    pleased = _PRAISE.search(low)
    if pleased and not objection:
        return "POSITIVE", "praise", pleased[0].strip()
    accepted = None if objection else acceptance(text, kind)
    if accepted and not _ORDER.search(lowered(accepted)):
        return "POSITIVE", "acceptance", accepted
    return "NEUTRAL", "", ""


# -- The labeller

VERSION = 1
"""Version of the rules; raise it when a label would change."""
_EMPTY_SESSION = Session(session_id="", context="product", format="", agent="", artifact_id="")


class Rules(LocalLabeller):
    """Sentiment by words (`sentiment_of`); pushback and intent by the signals `chat.pushback_type` and
    `chat.prompt_intent`."""

    name = RULES

    def version(self, task: Task) -> str:
        if task.name not in BY_TASK:
            raise UsageError(
                f"There are no rules for {task.name}.",
                f"Rules do {', '.join(BY_TASK)}; a model does the others: --by openai:MODEL@URL.",
            )
        return f"rules-{VERSION}"

    def verdicts(self, task: str, messages: list[Question]) -> list[Verdict | Absent]:
        return [BY_TASK[task](question.message) for question in messages if question.message]


def _sentiment(turn: Turn) -> Verdict:
    value, rule, words = sentiment_of(turn.text, turn.kind)
    return Verdict(value, f"{rule}: “{words}”" if rule else "no word of praise or frustration")


def _by_signal(path: str) -> Callable[[Turn], Verdict | Absent]:
    """The value that a turn-level signal gives this message, in a session without labels that it could repeat."""

    def judge(turn: Turn) -> Verdict | Absent:
        view = SessionView(msgspec.structs.replace(_EMPTY_SESSION, turns=[turn]))
        why = CollectedEvidence(view)
        result = catalog.by_path(path).function(view, why)[0]
        if isinstance(result, Absent):
            return result
        words = next((item.excerpt for item in why.items if item.role == "support"), "")
        return Verdict(str(result.value), words or "no pattern matched")

    return judge


BY_TASK: dict[str, Callable[[Turn], Verdict | Absent]] = {
    "sentiment": _sentiment,
    "pushback": _by_signal("chat.pushback_type"),
    "prompt_intent": _by_signal("chat.prompt_intent"),
}


LABELLER = Kind(Rules, own_version=True)
