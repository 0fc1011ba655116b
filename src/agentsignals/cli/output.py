"""Output: aligned tables on stdout, progress on stderr for a person; one JSON document for a machine."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from agentsignals import on_demand
from agentsignals.words.text import inert, visible_in_json

if TYPE_CHECKING:
    from agentsignals.ingest.shard import SoFar
    from agentsignals.store import Store

MAX_CELL = 60
_heard: list[str] = []
MEND = (
    "`agentsignals analyze` reads again what its sources still hold; `agentsignals doctor --repair` also puts aside"
    " what can't be mended."
)
"""The command that repairs a damaged store."""


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show warnings of the store once on stderr, and put them into every JSON document: no answer from part of a store
    looks like one from all of it. Left-out units and failing model servers are shown on stderr."""
    import logging

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if text not in _heard:
                print(f"agentsignals: {printable(text)}", file=sys.stderr)
                if record.name == "agentsignals.store":
                    if not _heard:
                        print(f"  {MEND}", file=sys.stderr)
                    _heard.append(text)

    handler, loggers = Shown(), [logging.getLogger(f"agentsignals.{name}") for name in ("store", "registry", "labels")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        _heard.clear()


def json_text(value: Any, *, with_damage: bool = True) -> str:
    """One JSON document, indented. Where the store is damaged it says so as `damage`, with a list of rows as `rows`;
    not without `with_damage`, where that is what the document is about."""
    if _heard and with_damage:
        plain = msgspec.to_builtins(value, enc_hook=_plain)
        value = {**(plain if isinstance(plain, dict) else {"rows": plain}), "damage": _heard}
    try:
        encoded = msgspec.json.encode(value, enc_hook=_plain)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON has an escape for
        encoded = json.dumps(msgspec.to_builtins(value, enc_hook=_plain)).encode()
    return visible_in_json(msgspec.json.format(encoded, indent=2).decode())


def print_result(options: argparse.Namespace, result: Any, text: Callable[[Any], str]) -> int:
    """Print a result, as JSON where that was asked for, else in words. Returns the exit code."""
    print(json_text(result) if options.json else text(result))
    return 0


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], max_cell: int = MAX_CELL) -> str:
    """Rows in aligned columns: numbers to the right, long texts cut, control characters shown as spaces."""
    cells = [[_cell(v, max_cell) for v in row] for row in rows]
    if not cells:
        return f"{'  '.join(names)}\n(no rows)"
    numeric = [all(_is_number(row[n].removeprefix(">= ")) or not row[n] for row in cells) for n in range(len(names))]
    widths = [max(len(str(names[n])), *(len(row[n]) for row in cells)) for n in range(len(names))]
    lines = [_line(list(names), widths, numeric), "  ".join("-" * w for w in widths)]
    lines += [_line(row, widths, numeric) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def write_csv(out: IO[str], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes rows as CSV with a header, one at a time. No cell is one that a spreadsheet would run."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([inert(name) for name in names])
    for row in rows:
        texts = ["" if value is None else str(value) for value in row]
        numeric = [isinstance(v, int | float | Decimal) or _is_number(t) for v, t in zip(row, texts, strict=True)]
        writer.writerow([t if is_number else inert(t) for t, is_number in zip(texts, numeric, strict=True)])


def printable(text: str) -> str:
    """Trace text on one line: without what a terminal obeys, and without what would begin a line of its own."""
    return "".join(c if c.isprintable() else " " for c in text)


def fields(rows: Iterable[tuple[str, Any]], gap: str = "  ") -> str:
    """Return one line for each name and its value; without the rows that have no value."""
    return "\n".join(f"{name + gap:12}{printable(str(value))}" for name, value in rows if value)


def counted(counts: Mapping[str, int], *, most_first: bool = False) -> str:
    """Return counts in a row, as `3 bad json, 1 empty file`; empty where there is none."""
    ordered = sorted(counts.items(), key=lambda pair: -pair[1]) if most_first else counts.items()
    return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in ordered)


def figure(value: float | None) -> str:
    """A count with thousands apart."""
    return "unknown" if value is None else f"{value:,}"


def _line(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True))


def _cell(value: Any, max_cell: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    text = printable(value if isinstance(value, str) else str(value))
    return text if len(text) <= max_cell else text[: max_cell - 1] + "…"


def is_cut(value: Any) -> bool:
    """Return whether a table shows less of it than there is."""
    return _cell(value, MAX_CELL).endswith("…") and not str(value).endswith("…")


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


class Bar:
    """Progress on stderr: a live bar on a terminal, a line every few seconds elsewhere, nothing when quiet.

    As a context manager it is closed at the end.
    """

    EVERY_S = 5.0

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._bar: Any = None
        self._stage = ""
        self._said_at = time.monotonic()

    def __call__(self, stage: str, done: int, total: int | None, detail: str = "") -> None:
        if self._quiet:
            return
        if self._live:
            self._draw(stage, done, total, detail)
        elif time.monotonic() - self._said_at >= self.EVERY_S:
            self._said_at = time.monotonic()
            of = f" of {_amount(stage, total)}" if total else ""
            more = f"; {printable(detail)}" if detail else ""
            print(f"{stage}: {_amount(stage, done)}{of}{more}", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _draw(self, stage: str, done: int, total: int | None, detail: str) -> None:
        if self._bar is None or stage != self._stage:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # its thread watches bars that stand still; a process with one can't be copied
            self.close()
            self._stage = stage
            beneath = getattr(sys.stderr, "beneath", sys.stderr)  # the bar is moved by control characters
            in_bytes = stage == "reading"
            self._bar = tqdm(
                desc=stage, total=total, unit="B" if in_bytes else "", unit_scale=in_bytes, leave=False, file=beneath
            )
        if total is not None:
            self._bar.total = total
        if detail:
            self._bar.set_postfix_str(printable(detail))
        self._bar.update(done - self._bar.n)


def compute_on_ask(quiet: bool) -> None:
    """Compute signals that a verb asks for and nobody asked for before, with progress on stderr."""

    def compute(store: Store, paths: frozenset[str], shard: str | None) -> None:
        from agentsignals.ingest import pipeline

        with Bar(quiet) as bar:
            pipeline.compute(store, paths, shard, bar, tell=tell)

    on_demand.compute = compute


def tell(what: str) -> None:
    """Print a remark of this program on stderr."""
    print(f"agentsignals: {printable(what)}", file=sys.stderr)


def _amount(stage: str, n: int) -> str:
    return f"{n / 1e6:.0f} MB" if stage == "reading" else f"{n:,}"


def written_as(report: str) -> str:
    """Return the path of a report, and a hint where its charts are not drawn."""
    from agentsignals.ui.report import without_charts

    hint = without_charts(report)
    return f"{report}\n{'':10}  {hint}" if hint else report


# An answer as tables and sentences: aligned text for a terminal, or Markdown for a page.


class Printed:
    """Collects the parts of an answer; `str` puts them together, with a blank line between two.

    `widest`: the most characters of a cell; `cut`: also in Markdown, which else shows cells whole.
    """

    def __init__(self, *, markdown: bool, widest: int = MAX_CELL, cut: bool = False) -> None:
        self.parts: list[str] = []
        self._markdown = markdown
        self._widest = widest
        self._most_chars = widest if cut else None

    def lines(self, sentences: Iterable[str], mark: str = "- ") -> None:
        """Add sentences, one a line; in Markdown behind a mark. None of no sentence."""
        from agentsignals.ui.document import plain_lines

        if listed := list(sentences):
            self.parts.append(plain_lines(listed, mark) if self._markdown else "\n".join(map(printable, listed)))

    def table(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        title: str = "",
        mark: str = "### ",
        widest: int | None = None,
    ) -> None:
        """Add a table below its title. None of no row."""
        from agentsignals.ui.document import plain_table

        if not rows:
            return
        if self._markdown:
            heading = f"{mark}{title}\n\n" if title else ""
            self.parts.append(heading + plain_table(names, rows, self._most_chars))
        else:
            self.parts.append((f"{title}\n" if title else "") + table(names, rows, widest or self._widest))

    def __str__(self) -> str:
        return "\n\n".join(self.parts)


# Progress of a run that reads traces: sessions, prompts, calls and dollars so far.

EARLY_S = 1.0
"""Seconds after which the first line is printed where stderr is no terminal. Shorter runs print none."""
_COLUMNS = 80
"""Width of a terminal that does not tell its own."""


class Reading(Bar):
    """A bar until the first sessions are read, then the sums so far: updated in place on a terminal, one line a second
    after the start and one every few seconds elsewhere, nothing when quiet."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._began = time.monotonic()
        self._total: int | None = None
        self._drawn = 0
        self._is_told = False

    def __call__(self, stage: str, done: int, total: int | None, detail: str = "") -> None:
        if stage == "reading":
            self._total = total
            if self._is_told:
                return
        else:
            self._clear()
        super().__call__(stage, done, total, detail)

    @property
    def heard(self) -> Callable[[SoFar], None] | None:
        """Where the sums go. None when quiet: then nobody adds up."""
        return None if self._quiet else self.so_far

    def so_far(self, sums: SoFar) -> None:
        """Show the sums over the sessions read until now."""
        now = time.monotonic()
        if self._live:
            self._is_told = True
            super().close()
            beneath = getattr(sys.stderr, "beneath", sys.stderr)  # the line is redrawn by a control character
            try:
                columns = os.get_terminal_size(beneath.fileno()).columns or _COLUMNS
            except (OSError, ValueError):
                columns = _COLUMNS
            line = sentence(sums, self._total, columns - 1)
            beneath.write(f"\r{line.ljust(self._drawn)}")
            beneath.flush()
            self._drawn = len(line)
        elif now - self._began >= EARLY_S and (not self._is_told or now - self._said_at >= self.EVERY_S):
            self._is_told, self._said_at = True, now
            print(sentence(sums, self._total), file=sys.stderr, flush=True)

    def close(self) -> None:
        self._clear()
        super().close()

    def _clear(self) -> None:
        if self._drawn:
            beneath = getattr(sys.stderr, "beneath", sys.stderr)
            beneath.write(f"\r{' ' * self._drawn}\r")
            beneath.flush()
            self._drawn = 0


def sentence(sums: SoFar, total: int | None, width: int = 0) -> str:
    """Return the sums in one line. Where a `width` is given and too narrow, calls go first, then prompts."""
    from agentsignals.questions.formatting import formatted

    priced = sums.sessions - sums.unpriced_sessions
    cost = formatted(sums.cost_usd, "usd", sums.lower_bounds > 0) if priced else "cost unknown"
    read = f"{min(sums.bytes / total, 1.0):.0%} read: " if total else ""
    counts = ((sums.sessions, "session"), (sums.prompts, "prompt"), (sums.tool_calls, "call"))
    parts = [f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts]
    line = f"{read}{', '.join(parts)}, {cost} so far"
    while width and len(line) > width and len(parts) > 1:
        parts.pop()
        line = f"{read}{', '.join(parts)}, {cost}"
    return line[:width] if width else line
