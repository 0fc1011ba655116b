"""Prompts prepared for topics: a person's own words, without secrets and without names from their project."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain

from agentsignals.questions.question import Row
from agentsignals.redaction import Redactor
from agentsignals.stats.grouping import words_of
from agentsignals.words.lexicon import prose

SHORTEST, LONGEST = 30, 1500
"""Characters that a prompt must have after cleaning (SWE-chat; design/labels.md#topics)."""
MOST, MOST_OF_PLACE = 4000, 400
"""Prompts that are drawn where there are more, and from one project: to clean one takes longer than to group it."""
_ADDRESS = re.compile(r"https?://\S{1,2000}")
_BRACKETS = re.compile(r"\[[^\]\n]{0,200}\]")
_NAME = re.compile(r"[/\\_@#=<>{}0-9]|[^.]\.[^.]|[a-z][A-Z]")
"""Matches a path, file, identifier, mention or number within a word."""
_NO_LETTERS = re.compile(r"[^A-Za-z]+")
_INJECTED = re.compile(r"\s{0,9}<[a-z][a-z_-]{2,40}[ >]")
"""Beginning of messages that a harness inserted."""


class Prompt:
    """A prompt with its cleaned text."""

    def __init__(self, row: Row, place: str, text: str) -> None:
        self.row = row
        self.place = place
        self.text = text


class TopicPrompts:
    """The prompts that get a topic, and how many were left out, by reason."""

    def __init__(self, rows: Sequence[Row], places: dict[str, str]) -> None:
        self.left_out: Counter[str] = Counter()
        prompts = self._cleaned(rows, places)
        # Remove words of the project's name from its prompts, unless two other projects use them too.
        vocabularies: defaultdict[str, set[str]] = defaultdict(set)
        for prompt in prompts:
            vocabularies[prompt.place].update(words_of(prompt.text))
        used = Counter(chain.from_iterable(vocabularies.values()))  # by so many places
        names: dict[str, set[str]] = {}
        for place, words_here in vocabularies.items():
            named = words_here.intersection(words_of(_NO_LETTERS.sub(" ", place)))
            names[place] = {word for word in named if used[word] <= 2}
        for prompt in prompts:
            if of_place := names[prompt.place]:
                words = prompt.text.split()
                prompt.text = " ".join(word for word in words if not of_place.intersection(words_of(word)))
        self.prompts = self._of_fitting_length(prompts)
        if not self.is_sample:  # so that no project dominates
            most = max(20, -(-len(self.prompts) // 10))
            self.prompts = self._drawn(self.prompts, most, "over the limit per project")

    def _cleaned(self, rows: Sequence[Row], places: dict[str, str]) -> list[Prompt]:
        prompts = []
        for row in rows:
            if row["language"] != "en":
                self.left_out["not identified as English"] += 1
            elif _INJECTED.match(row["text"]):
                self.left_out["inserted by a harness"] += 1
            else:
                # A session whose place nobody knows is a place of its own.
                place = places.get(row["session_id"]) or str(row["session_id"])
                prompts.append(Prompt(row, place, row["text"]))
        self.is_sample = len(prompts) > MOST
        if self.is_sample:
            prompts = self._drawn(prompts, MOST_OF_PLACE, "not drawn")
        mask = Redactor(pseudonyms=False).plain  # first of all: a word alone no longer shows what it was part of
        for prompt in prompts:
            prompt.text = plain_prompt(mask(prompt.text))
        return prompts

    def _drawn(self, prompts: list[Prompt], most_of_place: int, left_out: str) -> list[Prompt]:
        """Draw at most `MOST` different prompts, and so many from each project: those with the lowest hash."""
        taken: Counter[str] = Counter()
        drawn: dict[str, Prompt] = {}
        for prompt in sorted(prompts, key=_by_chance):
            if len(drawn) < MOST and prompt.text not in drawn and taken[prompt.place] < most_of_place:
                taken[prompt.place] += 1
                drawn[prompt.text] = prompt
        self.left_out += Counter({left_out: len(prompts) - len(drawn)})
        return [prompt for prompt in prompts if drawn.get(prompt.text) is prompt]

    def _of_fitting_length(self, prompts: list[Prompt]) -> list[Prompt]:
        by_text: dict[str, Prompt] = {}
        for prompt in prompts:
            if len(prompt.text) < SHORTEST:
                self.left_out["too short"] += 1
            elif len(prompt.text) > LONGEST:
                self.left_out["too long"] += 1
            elif prompt.text.lower() in by_text:
                self.left_out["repeated"] += 1
            else:
                by_text[prompt.text.lower()] = prompt
        return list(by_text.values())


def _by_chance(prompt: Prompt) -> bytes:
    """Order independent of time and project, and reproducible."""
    return hashlib.blake2b(prompt.text.encode(errors="replace"), digest_size=8).digest()


def plain_prompt(text: str) -> str:
    """Remove code, quotations, addresses, paths, identifiers, mentions and numbers; return one line."""
    plain = _BRACKETS.sub(" ", _ADDRESS.sub(" ", prose(text, [], [])))
    return " ".join([word for word in plain.split() if not _NAME.search(word.rstrip(".,:;!?"))])
