"""What people type into a search box, as a question for the index. Nothing that can be typed is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from agentsignals.fulltext.passages import KINDS, spaced, storable

MOST_TERMS = 24
"""Words of one question: more are those of a text that was pasted, and each costs a look-up."""
MOST_CHARS = 2_000
SHORTEST_BEGINNING = 3
"""Letters of a word that also stands for what begins with it: of one or two, nearly everything does."""
SHORTEST_STARRED = 2
"""The same where somebody asks for it: of 5,000 sessions, what begins with one letter takes seconds to put together."""
FIELDS = ("kind", "tool", "agent", "repo", "session", "context")
# Only a word of three letters is left out: `--no-verify`, `-m` and `-rf` are looked for.
_PARTS = re.compile(rf'((?<!\S)-(?="|[^\W_]{{3}}))?(?:({"|".join(FIELDS)}):(?=\S))?("[^"]*"?\*?|\S+)', re.IGNORECASE)
_NAMES = {**{kind: kind for kind in KINDS}, **{f"{kind}s": kind for kind in KINDS}, "replies": "reply"}
_CONTROL = re.compile("[\x00-\x1f\x7f]")


class Term(Struct, frozen=True):
    """Words that stand one behind the other."""

    text: str
    is_beginning: bool
    """Whether the last of them may go on."""

    def matched(self) -> str:
        """In the language of SQLite's FTS5, where a string in quotes holds nothing but itself."""
        quoted = spaced(self.text).replace('"', '""')
        return f'"{quoted}"{"*" if self.is_beginning else ""}'


class Filter(Struct, frozen=True):
    """A condition on the session or the tool."""

    field: str
    value: str
    is_excluded: bool


class Question(Struct):
    """All `terms` in one passage, and none of those `without`."""

    terms: list[Term]
    without: list[Term]
    kinds: frozenset[str]
    """The kinds of passages that count."""
    filters: list[Filter]
    notes: list[str]
    """What of it could not be taken as it was typed."""

    @property
    def expression(self) -> str:
        """In the language of FTS5; empty where it asks for nothing."""
        tools = [f for f in self.filters if f.field == "tool"]
        wanted = [f"{{text parts}} : ({' AND '.join(term.matched() for term in self.terms)})"] if self.terms else []
        wanted += [_of_tool(f) for f in tools if not f.is_excluded]
        unwanted = [f"{{text parts}} : ({term.matched()})" for term in self.without]
        unwanted += [_of_tool(f) for f in tools if f.is_excluded]
        if not wanted:
            return ""
        return f"({' AND '.join(wanted)})" + (f" NOT ({' OR '.join(unwanted)})" if unwanted else "")


def read(text: str) -> Question:
    """Words, `"phrases"`, `beginnings*`, `-without`, and conditions: `kind:` and the other FIELDS."""
    asked = Question([], [], frozenset(KINDS), [], [])
    wanted: set[str] = set()
    unwanted: set[str] = set()
    if len(text) > MOST_CHARS:
        asked.notes.append(f"Only the first {MOST_CHARS:,} characters were looked for.")
    for minus, field, value in _pieces(text[:MOST_CHARS]):
        if field == "kind" and (kinds := _kinds(value)):
            (unwanted if minus else wanted).update(kinds)
            continue
        if field == "kind":
            asked.notes.append(f"kind:{value} is none of {', '.join(KINDS)}; it was looked for as words.")
        if field in FIELDS[1:]:
            if _has_letters(value):
                asked.filters.append(Filter(field, value.strip('"*'), bool(minus)))
        elif (term := _term(f"kind {value}" if field else value)) and term not in (
            terms := asked.without if minus else asked.terms
        ):
            terms.append(term)
            if value.endswith("*") and not term.is_beginning:
                asked.notes.append(f"{value} was looked for as a whole word: a beginning has two letters or more.")
    if len(asked.terms) + len(asked.without) > MOST_TERMS:
        asked.notes.append(f"Only the first {MOST_TERMS} words were looked for.")
        asked.terms = asked.terms[:MOST_TERMS]
        asked.without = asked.without[: MOST_TERMS - len(asked.terms)]
    asked.kinds = frozenset(wanted or KINDS) - unwanted
    return asked


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    clean = storable(_CONTROL.sub(" ", text))
    for minus, field, value in _PARTS.findall(clean):
        yield minus, field.lower(), value


def _kinds(value: str) -> set[str]:
    named = [name for name in re.split(r"[,|]", value.strip('"').lower()) if name]
    return {_NAMES[name] for name in named} if _NAMES.keys() >= set(named) else set()


def _term(value: str) -> Term | None:
    if not _has_letters(value):
        return None
    words = value.replace('"', " ").rstrip("*").strip()
    is_phrase = value.startswith('"') and not value.endswith("*")
    last = re.split(r"[\W_]+", words.rstrip("".join(c for c in set(words) if not c.isalnum())))[-1]
    shortest = SHORTEST_STARRED if value.endswith("*") else SHORTEST_BEGINNING
    return Term(words, not is_phrase and (len(last) >= shortest or not last.isascii()))


def _has_letters(value: str) -> bool:
    return any(c.isalnum() for c in value)


def _of_tool(condition: Filter) -> str:
    quoted = condition.value.replace('"', '""')
    return f'{{tool}} : (^"{quoted}"*)'
