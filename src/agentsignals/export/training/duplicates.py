"""The same text twice, and nearly so: by the share of their runs of five words that two texts have in common.

Bottom-k sketches (Broder 1997, "On the resemblance and containment of documents"): of each text the k smallest hashes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from heapq import nsmallest

from agentsignals.embedding.lexical import split_words

RUN_WORDS = 5
NEAR = 0.8
"""Share of common runs (Jaccard) from which on two texts are nearly the same (Lee et al. 2022, arXiv 2107.06499)."""
KEPT = 512
"""Hashes of a text that are kept: the share is off by 0.02 (standard error at 0.8)."""
_LOOKED_UP, _LIKELY = 16, 0.4
"""Texts are compared where they share 7 of their smallest 16 hashes: of two that share 0.8 of their runs all but one in
a thousand do, of those that share a tenth (instructions that stand in every prompt of a benchmark) one in a hundred."""

Sketch = tuple[int, ...]


class Seen:
    """The texts that were taken so far."""

    def __init__(self) -> None:
        self._exact: set[bytes] = set()
        self._by_hash: dict[int, list[int]] = {}
        self._sketches: list[Sketch] = []

    def why_left_out(self, text: str) -> str:
        """Takes a text; empty, or why it is left out: a text taken before is the same, or nearly so."""
        words = split_words(text) or text.split()  # of signs alone
        exact = hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).digest()
        if exact in self._exact:
            return "the same as another"
        made = sketch(words)
        keys = made[:_LOOKED_UP]
        shared = Counter(n for key in keys for n in self._by_hash.get(key, ()))
        likely = (self._sketches[n] for n, count in shared.items() if count >= len(keys) * _LIKELY)
        if any(resemblance(made, other) >= NEAR for other in likely):
            return "nearly the same as another"
        self._exact.add(exact)
        for key in keys:
            self._by_hash.setdefault(key, []).append(len(self._sketches))
        self._sketches.append(made)
        return ""


def sketch(words: list[str]) -> Sketch:
    """The smallest hashes of a text's runs of words; of one run where the text is shorter."""
    runs = {" ".join(words[n : n + RUN_WORDS]) for n in range(max(1, len(words) - RUN_WORDS + 1))}
    hashes = (int.from_bytes(hashlib.blake2b(r.encode("utf-8", "replace"), digest_size=8).digest()) for r in runs)
    return tuple(nsmallest(KEPT, hashes))


def resemblance(left: Sketch, right: Sketch) -> float:
    """The share of runs that two texts have in common, estimated."""
    union = nsmallest(KEPT, {*left, *right})
    shared = set(left) & set(right)
    return sum(key in shared for key in union) / len(union)
