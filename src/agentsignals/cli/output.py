"""Output: aligned tables on stdout, progress on stderr for a person; one JSON document for a machine."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from agentsignals import on_demand
from agentsignals.model.lazy import deferred_pattern
from agentsignals.words.text import inert, visible_in_json

if TYPE_CHECKING:
    from agentsignals.ingest.shard import SoFar
    from agentsignals.store import Store

MAX_CELL = 60
_LONGEST_NAME = 240
"""Characters of the first column's cells where shorter ones would be the same."""
_heard: list[str] = []
MEND = (
    "`agentsignals analyze` reads the damaged parts again from their sources. `agentsignals doctor --repair` also"
    " moves aside what cannot be repaired."
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
                is_of_store = record.name == "agentsignals.store"
                tell(text, *([MEND] if is_of_store and not _heard else []))
                if is_of_store:
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


# Tables and sentences at the terminal's width


def width() -> int:
    """Return the columns of the terminal: those of $COLUMNS, else its own, else 80."""
    return max(20, shutil.get_terminal_size((80, 24)).columns)


_GAP = 2
_FEWEST, _FEWEST_OF_LONG, _LONG = (12, 18), (20, 26), 40
"""Widths, in narrow and wide terminals, that a column of words keeps before another column is left out; of one whose
cells are long."""
_MOST_NAMED = 4
"""Left-out columns that are named."""


def table(  # noqa: PLR0913  (how it is laid out)
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    max_cell: int = MAX_CELL,
    *,
    optional: Sequence[str] = (),
    one_line: bool = False,
    as_wide_as: int | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """Return rows in aligned columns that fit the terminal, numbers to the right, control characters as spaces.

    Long cells are cut at `max_cell` and wrapped at words; with `one_line` cut where their column ends. Where columns
    don't fit, those of `optional` are left out first, then the last ones, and a line names them. `notes`: sentences
    about columns by name, printed below where the column is shown.
    """
    cells = [[cell(value, max_cell) for value in row] for row in rows]
    longer = [cell(row[0], _LONGEST_NAME) for row in rows]
    if len({row[0] for row in cells}) < len(set(longer)):  # names that differ only behind the cut
        cells = [[name, *rest] for name, (_, *rest) in zip(longer, cells, strict=True)]
    if not cells:
        return f"{'  '.join(names)}\n(no rows)"
    room = width() if as_wide_as is None else as_wide_as
    columns = [_column(names[n], [row[n] for row in cells], n == 0, room) for n in range(len(names))]
    kept = list(columns)
    leaving = [column for name in optional for column in columns if column.name == name]
    leaving += [column for column in reversed(columns) if column not in leaving]
    while len(kept) > 1 and sum(column.least + _GAP for column in kept) - _GAP > room:
        kept.remove(next(column for column in leaving if column in kept))
    while sum(column.width + _GAP for column in kept) - _GAP > room:
        widest = max(kept, key=lambda column: (column.width > column.least, column.width))
        widest.width -= 1
    lines = _laid_out(kept, room, one_line=one_line)
    left_out = [column.name for column in columns if column not in kept]
    if left_out:
        named = ", ".join(left_out) if len(left_out) <= _MOST_NAMED else f"{len(left_out)} columns"
        lines += wrapped(f"(not shown at this width: {named}; --json has all)", room)
    shown = {column.name for column in kept}
    lines += [f"  {name}: {note}" for name, note in (notes or {}).items() if name in shown]
    return "\n".join(lines)


class _Column(msgspec.Struct, eq=False):
    """A column of a table, and how wide it is."""

    name: str
    cells: list[str]
    is_number: bool
    least: int
    """Width below which another column is left out."""
    width: int


def _column(name: str, cells: list[str], is_first: bool, room: int) -> _Column:
    """Measure a column: numbers, dates, intervals and the first column are not broken, words down to some width."""
    widest = max(map(len, cells))
    is_number = widest > 0 and all(_NUMBER.fullmatch(text) or not text for text in cells)
    low, high = _FEWEST if widest <= _LONG else _FEWEST_OF_LONG
    is_fixed = is_number or is_first or all(_UNBROKEN.fullmatch(text) or not text for text in cells)
    least = widest if is_fixed else min(widest, max(low, min(high, room // 4)))
    least = max(min(least, room // 2), *(len(word) for word in (name or "-").split()))
    return _Column(name=name, cells=cells, is_number=is_number, least=least, width=max(widest, len(name)))


def _laid_out(columns: list[_Column], room: int, *, one_line: bool) -> list[str]:
    """Lay out columns by rich. Cells are shown as they are: nothing in them is markup."""
    from rich.console import Console  # 50 ms: --help and --version print no table
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    for column in columns:
        made.add_column(
            Text(column.name),
            justify="right" if column.is_number else "left",
            width=column.width,
            no_wrap=one_line,
            overflow="ellipsis" if one_line else "fold",
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*map(Text, row))
    # Where stdout is a terminal that shows colours, and $NO_COLOR does not forbid them.
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    console = Console(
        file=io.StringIO(), width=room, color_system="standard" if coloured else None, force_terminal=coloured,
        highlight=False, markup=False, emoji=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    with console.capture() as captured:
        console.print(made)
    return [line.rstrip().replace("\x1b[", STYLE) for line in captured.get().splitlines()]


STYLE = f"<{os.urandom(8).hex()}>"
"""Stands for the beginning of a colour in what is printed. Text of a trace can't hold it: it is drawn at each start."""
_STYLED = re.compile(rf"{STYLE}[\d;]*m")


class Fitted:
    """A stream in front of stdout that wraps lines at words where they are longer than the terminal is wide."""

    def __init__(self, beneath: IO[str]) -> None:
        self.beneath = beneath
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = f"{self._begun}{text}".split("\n")
        if lines:
            self.beneath.write("".join(f"{line}\n" for whole in lines for line in wrapped(whole)))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        begun, self._begun = self._begun, ""
        self.beneath.write(begun)
        self.beneath.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def fitted() -> Iterator[None]:
    """Inside, lines that are printed to stdout fit the terminal."""
    out: Any = Fitted(sys.stdout)
    with redirect_stdout(out):
        try:
            yield
        finally:
            with suppress(BrokenPipeError):
                out.flush()


_HANGS = re.compile(r" *(?:\d+\. |[-•*] |[\w,'-][\w ,'-]{0,14}?  +)?")
"""Beginning of a line whose next lines are set below what follows it: an indent, a number, a name before a gap."""


_TYPED = re.compile(r"( *(?:next: *|\$ )?)agentsignals [^`]*(?<!\w[.:])")
"""A line that is a command, and no sentence."""
_ARGUMENT = deferred_pattern(r"(?:'[^']*'|\"[^\"]*\"|\S)+")


def wrapped(line: str, room: int | None = None) -> list[str]:
    """Return a line as lines of the terminal's width, broken at words; an address stays whole. A line that is a command
    is continued as a shell continues it, so that it can be copied."""
    room = width() if room is None else room
    if len(line) <= room or len(_STYLED.sub("", line)) <= room:
        return [line]
    if typed := _TYPED.fullmatch(line):
        lines = [f"{typed[1]}agentsignals"]
        for argument in _ARGUMENT.findall(line, typed.end(1))[1:]:
            if len(lines[-1]) + len(argument) + len("  \\") <= room:
                lines[-1] += f" {argument}"
                continue
            lines[-1] += " \\"
            lines.append(f"{' ' * len(typed[1])}  {argument}")
            if len(lines[-1]) + len(" \\") > room:  # a word goes on at the beginning of the next line
                value = shlex.split(argument)[0]
                most = room // 2 if "'" in value else room - len("''\\")
                pieces = [shlex.quote(value[at : at + most]) for at in range(0, len(value), most)]
                lines[-1:] = [*(f"{piece}\\" for piece in pieces[:-1]), pieces[-1]]
        return lines
    hanging = _HANGS.match(line)
    indent = " " * min(hanging.end() if hanging else 0, room // 3)
    breaks = not re.search(rf"https?://\S{{{room - len(indent)},}}", line)
    lines = textwrap.wrap(
        line, room, subsequent_indent=indent, break_on_hyphens=False, break_long_words=breaks,
        drop_whitespace=True, replace_whitespace=False,
    )  # fmt: skip
    return lines or [""]


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


_COMMAND = deferred_pattern(r"`agentsignals [^`]+(?=`)|(?:^ *|: )agentsignals [^`]+$", re.MULTILINE)


def named_in(text: str, named: str) -> str:
    """Return text whose commands name the same store and sessions. `named`: options, with a space before each."""
    return _COMMAND.sub(lambda found: f"{found[0]}{'' if '--store' in found[0] else named}", text)


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


_NO_SEPARATOR = 10_000
"""Whole numbers below this have no separator: many are years."""


def cell(value: Any, most: int = MAX_CELL) -> str:
    """Return a value as a table shows it: on one line, at most so many characters."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value) if abs(value) < _NO_SEPARATOR else f"{value:,}"
    if isinstance(value, float | Decimal):
        from agentsignals.questions.question import number

        return number(float(value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    text = printable(value if isinstance(value, str) else str(value))
    return text if len(text) <= most else text[: most - 1] + "…"


_DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?"
_FIGURE = r"(?:>= |≥ |~ ?)?[-+]?\$?\d[\d,]*(?:\.\d+)?(?: ?(?:%|s|min|h|d|[kMG]B?|B|points))?"
_NUMBER = deferred_pattern(rf"–|{_FIGURE}")
"""A cell that is set to the right."""
_UNBROKEN = deferred_pattern(rf"{_DATE}|{_FIGURE}(?: to {_FIGURE}|,? \({_FIGURE}(?: to {_FIGURE})?\))?")
"""A date, an interval, or a figure with its interval."""


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
        """Compute the signals of these catalogue paths for a shard (None: for all), before the query goes on."""
        from agentsignals.ingest import pipeline

        with Bar(quiet) as bar:
            pipeline.compute(store, paths, shard, bar, tell=tell)

    on_demand.compute = compute


def tell(what: str, *hints: str) -> None:
    """Print a remark of this program on stderr, and below it what to do."""
    lines = [f"agentsignals: {printable(what)}", *(f"  {printable(hint)}" for hint in hints)]
    print("\n".join(part for line in lines for part in wrapped(line)), file=sys.stderr)


def _amount(stage: str, n: int) -> str:
    return f"{n / 1e6:.0f} MB" if stage == "reading" else f"{n:,}"


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

    def table(  # noqa: PLR0913  (how it is laid out)
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        title: str = "",
        mark: str = "### ",
        widest: int | None = None,
        optional: Sequence[str] = (),
    ) -> None:
        """Add a table below its title. None of no row. `optional`: columns that a narrow terminal goes without."""
        from agentsignals.ui.document import plain_table

        if not rows:
            return
        if self._markdown:
            heading = f"{mark}{title}\n\n" if title else ""
            self.parts.append(heading + plain_table(names, rows, self._most_chars))
        else:
            self.parts.append(
                (f"{title}\n" if title else "") + table(names, rows, widest or self._widest, optional=optional)
            )

    def part(  # noqa: PLR0913  (how it is laid out)
        self,
        title: str,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        lines: Sequence[str],
        before: str = "",
        optional: Sequence[str] = (),
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Add a title, a table and sentences below it, each of which may be missing. `before`: begins each sentence of
        a terminal's text. `notes`: as for `table`."""
        if self._markdown:
            self.lines([title.capitalize()] if title else (), "## ")
            self.table(names, rows)
            explained = [f"{name}: {note}" for name, note in (notes or {}).items() if name in names]
            self.lines(" ".join(line.split()) for line in (*explained, *lines))
        else:
            made = [title] if title else []
            made += [table(names, rows, self._widest, optional=optional, notes=notes)] if names else []
            self.parts.append("\n".join([*made, *(printable(f"{before}{line}") for line in lines)]))

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
    from agentsignals.questions.question import formatted, times

    priced = sums.sessions - sums.unpriced_sessions
    cost = formatted(sums.cost_usd, "usd", sums.lower_bounds > 0) if priced else "cost unknown"
    read = f"{min(sums.bytes / total, 1.0):.0%} read: " if total else ""
    counts = ((sums.sessions, "session"), (sums.prompts, "prompt"), (sums.tool_calls, "call"))
    parts = [times(n, noun) for n, noun in counts]
    line = f"{read}{', '.join(parts)}, {cost} so far"
    while width and len(line) > width and len(parts) > 1:
        parts.pop()
        line = f"{read}{', '.join(parts)}, {cost}"
    return line[:width] if width else line
