"""What training data were made, and what was left out, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

from msgspec import Struct, field

from agentsignals.export.training.benchmarks import Match
from agentsignals.export.training.rows import Row

Kind = Literal["accepted", "preferences", "steps"]
KINDS: tuple[str, ...] = get_args(Kind)
Example = dict[str, Any]


class Made(Struct, kw_only=True):
    """The counts of one export."""

    kind: str
    considered: int
    """Sessions that were chosen."""
    examples: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Sessions, or pairs, by reason."""
    benchmarks: Counter[Match] = field(default_factory=Counter)
    """Sessions of the examples that are of a known benchmark."""
    cut_results: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    datasets: Counter[str] = field(default_factory=Counter)
    """Sessions of the examples."""

    @property
    def rungs(self) -> tuple[str, ...]:
        """The outcomes whose attempts may make an example."""
        return ("solved",) if self.kind == "accepted" else ("solved", "failed")

    @property
    def reasons(self) -> list[str]:
        """What was left out in words, most first."""
        return [f"{n:,}: {reason}" for reason, n in self.left_out.most_common()]

    @property
    def contamination(self) -> list[str]:
        """Benchmarks that the examples are of, in words."""
        return [f"{match.benchmark}, by its {match.by}: {n:,} sessions" for match, n in self.benchmarks.most_common()]

    def count(self, rows: Sequence[Row]) -> None:
        """Counts an example of these sessions."""
        self.examples += 1
        for row in rows:
            self.agents[row.agent or "not recorded"] += 1
            self.models[row.model or "not recorded"] += 1
            self.datasets[row.dataset or "not recorded"] += 1
            if row.benchmark is not None:
                self.benchmarks[row.benchmark] += 1
