"""A team's export as a page: made of its data alone, which stands in it, so that it can be made again and compared."""

from __future__ import annotations

import html as markup
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from agentsignals.catalog import catalogue
from agentsignals.errors import ExportError, SourceError
from agentsignals.export.team import Cell, Spread, Team, check, encode
from agentsignals.ui.page import Page
from agentsignals.ui.rendering import html
from agentsignals.ui.shared_session import style

MOST_BYTES = 64 << 20
_BEGINS, _ENDS = '<pre id="data" tabindex="0">', "</pre>"


def document(made: Team) -> bytes:
    """The page of an export."""
    signals = {signal.path: signal for signal in catalogue().values()}
    filled: dict[str, Any] = {
        "team": made,
        "data": encode(made).decode(),
        "weeks": _together(made.cells, lambda cell: (cell.context, cell.week)),
        "models": _together(made.cells, lambda cell: (cell.context, cell.agent, cell.model)),
        "spreads": [(key, list(rows)) for key, rows in groupby(made.spreads, key=_whose)],
        "signals": signals,
        **style(),
    }
    return html(Page("shared_team.html.j2", "Coding agents of a team, week by week", filled), "").encode()


def checked(path: Path) -> Team:
    """What a file of a team holds, JSON or page, word by word. ExportError where anything else is in it; SourceError
    where it can't be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SourceError(f"{path} is larger than any team export.", "Name another file.")
        content = path.read_bytes()
    except OSError as problem:
        raise SourceError(f"{path} can't be read: {problem.strerror}.", "Name a file of share --team.") from problem
    if not content.lstrip().startswith(b"<"):
        return check(content)
    _, begins, rest = content.decode("utf-8", "replace").partition(_BEGINS)
    made = check(markup.unescape(rest.partition(_ENDS)[0]).encode() if begins else b"")
    if document(made) != content:
        raise ExportError(
            "This page is not what its data gives: something was put into it, or another version made it.",
            "Check it with the version that made it, or make it again.",
        )
    return made


def _whose(spread: Spread) -> tuple[str, str]:
    return spread.context, spread.agent


def _together(cells: Sequence[Cell], key: Callable[[Cell], tuple[str, ...]]) -> list[dict[str, Any]]:
    """Sums over cells that have a key in common. A cost is that of the cells that have one."""
    made = []
    for named, of_key in groupby(sorted(cells, key=key), key=key):
        rows = list(of_key)
        costs = [cell.cost_usd for cell in rows if cell.cost_usd is not None]
        sums = {name: sum(getattr(c, name) for c in rows) for name in ("sessions", "prompts", "calls", "failed_calls")}
        outcomes = sum((Counter(cell.outcomes) for cell in rows), Counter())
        cost_usd = math.fsum(costs) if costs else None
        made.append({"key": named, **sums, "cost_usd": cost_usd, "outcomes": sorted(outcomes.items())})
    return made
