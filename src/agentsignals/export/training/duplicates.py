"""The same text twice, and nearly so: by the share of their runs of five words that two texts have in common.

Bottom-k sketches (Broder 1997, "On the resemblance and containment of documents"): of each text the k smallest hashes.
"""

from __future__ import annotations

import hashlib
from heapq import nsmallest

from agentsignals.embedding.lexical import split_words

RUN_WORDS = 5
NEAR = 0.8
"""Share of common runs (Jaccard) from which on two texts are nearly the same (Lee et al. 2022, arXiv 2107.06499)."""
KEPT = 512
"""Hashes of a text that are kept: the share is off by 0.02 (standard error at 0.8)."""
_LOOKED_UP = 16
"""Of two texts that share 0.8 of their runs the smallest 16 hashes of all are shared with odds of 1 - 0.2^16."""

Sketch = tuple[int, ...]


class Seen:
    """The texts that were taken so far."""

    def __init__(self) -> None:
        self._exact: set[bytes] = set()
        self._by_hash: dict[int, list[Sketch]] = {}

    def why_left_out(self, text: str) -> str:
        """Takes a text; empty, or why it is left out: a text taken before is the same, or nearly so."""
        words = split_words(text)
        exact = hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()
        if exact in self._exact:
            return "the same as another"
        made = sketch(words)
        others = {id(other): other for key in made[:_LOOKED_UP] for other in self._by_hash.get(key, ())}
        if any(resemblance(made, other) >= NEAR for other in others.values()):
            return "nearly the same as another"
        self._exact.add(exact)
        for key in made[:_LOOKED_UP]:
            self._by_hash.setdefault(key, []).append(made)
        return ""


def sketch(words: list[str]) -> Sketch:
    """The smallest hashes of a text's runs of words; of one run where the text is shorter."""
    runs = {" ".join(words[n : n + RUN_WORDS]) for n in range(max(1, len(words) - RUN_WORDS + 1))}
    hashes = (int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest()) for run in runs)
    return tuple(nsmallest(KEPT, hashes))


def resemblance(left: Sketch, right: Sketch) -> float:
    """The share of runs that two texts have in common, estimated."""
    union = nsmallest(KEPT, {*left, *right})
    shared = set(left) & set(right)
    return sum(key in shared for key in union) / len(union)
