"""What training data were made, and what was left out, counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

from msgspec import Struct, field

from agentsignals.export.training.benchmarks import Match
from agentsignals.export.training.rows import Row

Kind = Literal["accepted", "preferences", "steps"]
KINDS: tuple[str, ...] = get_args(Kind)
Example = dict[str, Any]
_TEMPLATE = re.compile(r"<\|[a-z_]+\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|<｜[^｜>]+｜>")
"""What chat templates set between messages (ChatML, Llama, Mistral, Gemma, DeepSeek)."""


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
    """Long results in the examples, of which the store keeps the ends."""
    templates: int = 0
    """Examples whose texts hold marks of chat templates."""
    across_models: int = 0
    """Pairs of two models."""
    session_ids: set[str] = field(default_factory=set)
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

    def count(self, rows: Sequence[Row], text: str, cut_results: int) -> None:
        """Counts an example of these sessions, with its words."""
        self.examples += 1
        self.cut_results += cut_results
        self.templates += _TEMPLATE.search(text) is not None
        self.across_models += len({row.model for row in rows}) > 1
        for row in rows:
            self.session_ids.add(row.session_id)
            self.agents[row.agent or "not recorded"] += 1
            self.models[row.model or "not recorded"] += 1
            self.datasets[row.dataset or "not recorded"] += 1
            if row.benchmark is not None:
                self.benchmarks[row.benchmark] += 1
