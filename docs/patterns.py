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
    "These patterns are searched in the *head* of a turn. The head is the first 320 characters of the turn in lower "
    "case, cleaned as described below, and ends before a line that begins text pasted from elsewhere (`pasted`). "
    "Turns of kind plan_handoff, attachment and scripted_prompt are not searched. A pattern marked `clause` must "
    "match at the beginning of a clause: at the start of the head, or after `.`, `!`, `?`, `;` or a line break. "
    "White space and up to three `opener`s may come before the match. A pattern marked `anywhere` may match at any "
    "position.",
    "A match of the patterns `why_did_you` and `instead_redirect` counts as a *correction* only in a turn of kind "
    "rejection_feedback. A match of `no_initial` counts only in the first 160 characters, and only without a match "
    "of `dialog` before it. A *rejection* counts only if the rest of the head does not match `new_instruction`; a "
    "`rejected_thing` after the rejecting words is ignored.",
    "A turn does not count as *English* if more than half of the letters of its head are beyond U+024F. A turn does "
    "not count as English if the rule of chat.prompt_language finds another language in its head. A turn does not "
    "count as English if its head has no `english` word, and has 12 different words or a letter beyond ASCII. Any "
    "other turn counts as English.",
)
_AGENTS = (
    "These phrases are searched in the agent's prose: text events in lower case, without code and quotations. Only "
    "whole words match. `before` is a pattern for the text before the phrase, within 40 characters; this text is "
    "part of the match. `then` is a pattern for the text after the phrase. A *question* is a sentence that ends in "
    "`?`. The kinds offer, preference and confirmation are tried in this order, and the first that matches is the "
    "question's kind. A sentence that begins with `|` is not a question. A self-correction must begin at the "
    'beginning of a clause, and counts once for each sentence. An assumption does not count after "without", "not", '
    '"instead of", "avoid", "than", "stop" or "never". If two matches overlap, only the first counts.',
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
    "stop words of the embedder named `words`": (("words that it ignores", " ".join(sorted(vectors._STOP))),),
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
        "Code fences and links are replaced by a space. Quoted lines, log lines and diff lines are removed as a whole; "
        "diff lines only from three lines on. Inline code and quotations are replaced by `•`. Then each run of spaces "
        "and tabs becomes one space, and `’` becomes `'`.",
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
