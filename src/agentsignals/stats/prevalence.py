"""How frequent something is, out of how often an imperfect judge names it (Rogan and Gladen 1978)."""

from __future__ import annotations

from math import sqrt

import msgspec
from msgspec import Struct

from agentsignals.stats.proportions import Z

WIDEST = 0.5
"""An interval wider than this tells nothing that anybody would act on."""


class OfClass(Struct, frozen=True, kw_only=True):
    """How often a class was met on projects that were left out, in rows that were drawn at random."""

    true: int
    """Rows of this class."""
    hits: int
    """Of these, those that the model called so."""
    others: int
    """Rows of other classes."""
    false_alarms: int
    """Of these, those that the model called so."""


class Corrected(Struct, frozen=True, kw_only=True):
    """A share as it was counted, and what it stands for."""

    counted: float
    recall: float | None
    """Of the things that are so, how many the judge names."""
    false_alarms: float | None
    """Of the things that are not, how many it names."""
    true: int = 0
    others: int = 0
    """How many things of both kinds these two were measured on."""
    share: float | None = None
    """None where it can't be told: nothing to measure the judge by, one no better than chance, or too wide an
    interval."""
    low: float | None = None
    high: float | None = None

    def in_words(self) -> str:
        """The share with its interval, and what it rests on."""
        named = f"{self.recall or 0:.0%} of {self.true} such and {self.false_alarms or 0:.0%} of {self.others} others"
        counted = f"named in {self.counted:.0%}; it named {named}"
        if self.share is None:
            return f"cannot be told ({counted})"
        return f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%}; {counted})"


def corrected(named: int, n: int, *, hits: int, true: int, false_alarms: int, others: int) -> Corrected:  # noqa: PLR0913  (two counts and what the judge did)
    """The share behind `named` of `n`, at 95 percent, by a judge that named `hits` of `true` such things and
    `false_alarms` of `others` in a random sample. n above 0.

    The variance is theirs, with each count shifted by the interval's z² (Lang and Reiczigel 2014), which holds its
    level in small samples. Things are taken as independent.
    """
    counted = named / n
    recall, alarms = hits / true if true else None, false_alarms / others if others else None
    plain = Corrected(counted=counted, recall=recall, false_alarms=alarms, true=true, others=others)
    if recall is None or alarms is None:
        return plain
    z2 = Z * Z
    p, se, sp = (named + z2 / 2) / (n + z2), (hits + 1) / (true + 2), (others - false_alarms + 1) / (others + 2)
    power = se + sp - 1
    if recall <= alarms or power <= 0:
        return plain
    share = min(1.0, max(0.0, (counted - alarms) / (recall - alarms)))
    middle = (p + sp - 1) / power
    shift = 2 * z2 * (middle * se * (1 - se) / (true + 2) - (1 - middle) * sp * (1 - sp) / (others + 2))
    half = (Z / power) * sqrt(
        p * (1 - p) / (n + z2)
        + se * (1 - se) / (true + 2) * middle**2
        + sp * (1 - sp) / (others + 2) * (1 - middle) ** 2
    )
    low, high = middle + shift - half, middle + shift + half
    if high < 0 or low > 1:  # named less often than where there is none: the judge does not behave here as it did there
        return plain
    low, high = max(0.0, low), min(1.0, high)
    if high - low > WIDEST:
        return plain
    return msgspec.structs.replace(plain, share=min(max(share, low), high), low=low, high=high)
