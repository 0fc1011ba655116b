"""The page of phrases that signals look for, written from the code's own tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentsignals.signals import anticipation, dynamics, reasoning
from agentsignals.signals.corpus import metrics
from agentsignals.signals.user import history, outcome
from agentsignals.views import plans
from agentsignals.words import lexicon, vectors
from agentsignals.words.lexicon import Phrases
from agentsignals.words.text import word_lists

_PEOPLE = (
    "They are looked for in the *head* of a turn: its first 320 characters in lower case, cleaned as below, up to "
    "a line that begins pasted text of others. Turns of kind plan_handoff, attachment and scripted_prompt have "
    "none. `clause` matches where a clause begins: at the start, behind `.`, `!`, `?`, `;` or a line break, blanks "
    "left out, and behind up to three `opener`s. `anywhere` is searched.",
    "A *correction* of `why_did_you` or `instead_redirect` counts in rejection_feedback only; a `no_initial` must "
    "stand in the first 160 characters, with no `dialog` before it. A *rejection* counts only where the rest of the "
    "head, without a `rejected_thing` behind the words, does not match `new_instruction`.",
    "A turn is *English* unless more than half of its head's letters are beyond U+024F; or its head has another "
    "language by the rule of chat.prompt_language; or it has no `english` word, and 12 different words or a letter "
    "beyond ASCII.",
)
_AGENTS = (
    "They are looked for in prose: text events in lower case, without code and quotations; whole words only. "
    "`before` is what stands before the words, within 40 characters, and belongs to the match; `then` is what follows "
    "them. A *question* is a sentence that ends in `?`; it has the first kind that holds of offer, preference, "
    "confirmation, and is none if it begins with `|`. Self-corrections begin where a clause does, and count once a "
    'sentence. Assumptions do not follow "without", "not", "instead of", "avoid", "than", "stop" or "never". Of two '
    "matches that overlap the first counts.",
)
_OTHERS: dict[str, tuple[Any, ...]] = {
    "chat.prompt_intent, by rules": tuple(lexicon._INTENTS.items()),
    "corpus.sentiment_label, NEGATIVE by rules": tuple(word_lists("reactions")["sentiment"]["negative"].items()),
    "corpus.sentiment_label, POSITIVE by rules": tuple(word_lists("reactions")["sentiment"]["positive"].items()),
    "chat.prompt_language, small words by language": tuple(
        (language, " ".join(words.split())) for language, words in word_lists("languages").items()
    ),
    "corpus.first_message_pattern": (
        *((rule.label, rule.pattern) for rule in metrics._RULES),
        ("continuation", metrics._CONTINUES),
        ("task_imperative begins with one of", " ".join(sorted(lexicon.ACTIONS))),
    ),
    "anticipation.prompt_underspecification": (
        ("outcome", anticipation._OUTCOME),
        *(("reference", pattern) for _, pattern in anticipation._REFERENCES),
        ("no reference", " ".join(word_lists("requests")["no_references"].split())),
    ),
    "anticipation.unrequested_files, left out": (("files", anticipation._NOT_BY_HAND),),
    "corpus.message_counts": (("path", metrics._PATH), ("address", metrics._ADDRESS), ("secret", metrics._SECRET)),
    "dynamics.gd_inaction": (
        ("item", dynamics._ITEM),
        ("a step that only looks", dynamics._LOOKS_ONLY),
        ("no items", " ".join(sorted(dynamics._NO_ITEMS))),
    ),
    "reasoning.plan_steps_detected": (
        ("numbered", reasoning._NUMBERED),
        ("bullet", reasoning._BULLET),
        ("a step begins", reasoning._BEGINS),
        ("with one of", " ".join(word_lists("requests")["plan_verbs"].split())),
    ),
    "dynamics.plan_ged, lines of a plan": (("numbered", plans._NUMBERED), ("else bulleted", plans._BULLETED)),
    "dynamics.session_failure_mode, goals": (
        ("list item", dynamics._LISTED),
        ("between clauses", dynamics._CLAUSE),
        ("a clause begins", dynamics._WORD),
        ("with a verb", "as corpus.first_message_pattern, task_imperative"),
    ),
    "loop.marker_score": tuple((name, ", ".join(words)) for name, words in word_lists("phrases")["markers"].items()),
    "stop words of the embedder `words`": (("left out", " ".join(sorted(vectors._STOP))),),
    "user.changes_reverted": (("command", outcome._REVERTS),),
    "user.repository_marks": (("remote", history._REMOTE), ("commit", history._COMMIT)),
}
"""Tables of single signals."""


def page() -> str:
    """Every table of phrases, with its regular expressions (Python's `re`)."""
    lines = [
        "<!-- made by `python -m docs.generate`; do not edit -->",
        "",
        "# Pattern tables",
        "",
        "## Words of people",
        "",
    ]
    lines += [line for paragraph in _PEOPLE for line in (paragraph, "")]
    families = {
        "corrections": lexicon.CORRECTIONS,
        "failure reports": lexicon.FAILURE_REPORTS,
        "rejection, acceptance, revert_all, gives_up": (
            lexicon.REJECTION,
            lexicon.ACCEPTANCE,
            lexicon.REVERT_ALL,
            lexicon.GIVING_UP,
        ),
    }
    for family, patterns in families.items():
        lines += [f"### {family}", ""]
        for pattern in patterns:
            for where, words in (("clause", pattern.clause), ("anywhere", pattern.anywhere)):
                if words is not None:
                    lines.append(_row(f"{pattern.name}, {where}", words.pattern))
        lines.append("")
    lines += [
        "### cleaning, in this order",
        "",
        "Fences and links become a blank, lines go as a whole (of a diff from three on), inline code and quotations "
        "become `•`; then runs of blanks and tabs become one blank and `’` a `'`.",
        "",
    ]
    for name in (
        "_FENCE",
        "_QUOTED_LINE",
        "_LOG_LINE",
        "_DIFF_LINE",
        "_INLINE_CODE",
        "_URL",
        "_STRAIGHT_QUOTE",
        "_CURLY_QUOTE",
    ):
        lines.append(_row(name.strip("_").lower(), getattr(lexicon, name).pattern))
    lines += [_row("pasted", lexicon._PASTED.pattern), _row("new_instruction", lexicon.NEW_INSTRUCTION.pattern)]
    lines += [_row("limits_work", lexicon._LIMITS.pattern), _row("opener", lexicon._OPENER.pattern)]
    lines += [_row("dialog", lexicon.QUOTED_DIALOG.pattern), _row("rejected_thing", lexicon.REJECTED_THING.pattern)]
    lines += [_row("english", lexicon._SMALL_WORDS), "", "## Words of agents", ""]
    lines += [line for paragraph in _AGENTS for line in (paragraph, "")]
    for phrases in (lexicon.HEDGES, lexicon.SELF_CORRECTIONS, lexicon.ASSUMPTIONS):
        lines += [f"### {phrases.name}", "", *_phrases(phrases), ""]
    lines += ["### questions", ""]
    for kind in (lexicon.OFFER, lexicon.PREFERENCE, lexicon.CONFIRMATION):
        lines.append(_row(kind.name, kind._pattern.pattern))
    lines += ["", "## Tables of single signals"]
    for signal, rows in _OTHERS.items():
        lines += ["", f"### {signal}", ""]
        for name, words in rows:
            lines.append(_row(name, words if isinstance(words, str) else words.pattern))
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, pattern: str) -> str:
    """A list item with a code span that is fenced by more backticks than the pattern has in a row."""
    shown = pattern.replace("\n", "\\n")
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    return f"* {name}: {fence} {shown} {fence}" if len(fence) > 1 else f"* {name}: `{shown}`"


def _phrases(phrases: Phrases) -> Iterator[str]:
    for sign in sorted(phrases.signs):
        for phrase in phrases._by_sign[sign]:
            parts = [f"“{phrase.words}”"]
            if phrase._preceding is not None:
                parts.append(f"before `{phrase._preceding.pattern}`")
            if phrase._following is not None:
                parts.append(f"then `{phrase._following.pattern}`")
            yield "* " + ", ".join(parts)
