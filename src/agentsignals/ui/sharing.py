"""One session as one file to hand on: masked, without scripts, opened anywhere without network.

Every text is masked before any of it is rendered, since colours and marks would take a secret apart; what was masked is
looked for once more in all texts, and then in the file, as an export is (`export.verify_export`).
"""

from __future__ import annotations

import html as markup
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from agentsignals import private_files
from agentsignals.errors import ExportError, SourceError
from agentsignals.export import cannot_write, refuse_secrets, verify_export
from agentsignals.export.team import Cell, Team, check, encode
from agentsignals.model import Event, Session, ToolCall, to_iso
from agentsignals.redaction import Guard, Redactor, texts_in, with_texts
from agentsignals.redaction.values import KNOWN
from agentsignals.signals.catalog import catalogue
from agentsignals.ui import page as words
from agentsignals.ui.markup import Change, changes, coloured, file_text, rendered, texts_of
from agentsignals.ui.page import Page
from agentsignals.ui.rendering import content_hash, html, text_of_asset
from agentsignals.ui.transcript import name_of
from agentsignals.views.calls import call_summary

if TYPE_CHECKING:
    from markupsafe import Markup

    from agentsignals.ui.raw_record import Pictures


MOST_BYTES = 12 << 20
"""Bytes of the file's conversation: it is mailed and opened on a phone. The entries after that are counted."""
MOST_CHARS = 20_000
"""Characters of one text; the note says how many more there were."""
_STYLES = ("page.css", "code.css", "shared.css")
_IS_MARKDOWN = re.compile(r"^(?:#{1,6} |```|[-*] |\d+\. )", re.MULTILINE)
"""Text of people is Markdown where it has any of these lines; otherwise its lines stay as they are."""


class Shared(Struct, kw_only=True):
    """The result of sharing a session."""

    file: str
    bytes: int
    masked: dict[str, int]
    """Masked secrets by kind."""
    entries: int
    left_out: int
    """Entries for which there was no room."""
    pictures: int = 0
    """Pictures in the file; nothing was masked in them."""
    pictures_left_out: int = 0


class Entry(Struct, kw_only=True):
    """One event, or a call with its result, as it is shown."""

    seq: int
    kind: str
    clock: str
    text: Markup | str = ""
    is_prose: bool = False
    cut_chars: int = 0
    turn: int | None = None
    call: ToolCall | None = None
    about: str = ""
    changes: list[Change] = []
    result: Entry | None = None


class Block(Struct):
    """Entries of one thread in a row; `name` is empty for the agent itself."""

    name: str
    entries: list[Entry]


def write(
    session: Session, path: Path, redactor: Redactor, most_bytes: int = MOST_BYTES, pictures: Pictures | None = None
) -> Shared:
    """Writes a session's file. ExportError, and no file, when it would hold a secret all the same or can't be
    written. `pictures`: those to put in; what they show is not masked."""
    masked = _masked(session, redactor)
    blocks, n_entries, left_out = _within(masked, most_bytes)
    done = Shared(file=str(path), bytes=0, masked=dict(redactor.counts), entries=n_entries, left_out=left_out)
    if pictures is not None:
        done.pictures, done.pictures_left_out = len(pictures.each), pictures.left_out
    asked = [turn for turn in masked.turns if turn.text.strip()]
    prompt = next((turn.text for turn in asked if turn.kind in ("prompt", "queued_prompt")), "")
    filled = {
        "session": masked,
        "blocks": blocks,
        "turns": [(turn.turn, words.cut(turn.text, 90)) for turn in asked],
        "masked": sorted(done.masked.items()),
        "left_out": done.left_out,
        "pictures": pictures,
        **style(),
        "began": (to_iso(masked.started_at) or "")[:16].replace("T", " "),
        "failed": sum(call.status == "error" for call in masked.tool_calls),
        "counts": Counter(call.class_ for call in masked.tool_calls),
    }
    title = words.cut(masked.title or prompt or "Session", 140)
    document = html(Page("shared_session.html.j2", title, filled), "")
    draft = path.with_name(f".{path.name}.tmp")
    try:
        private_files.write(draft, document, "replace")
        verify_export(draft, redactor)
        if pictures is not None:
            private_files.write(draft, pictures.put_into(document), "replace")
        done.bytes = draft.stat().st_size
        draft.replace(path)
    except OSError as problem:
        raise cannot_write(path, problem) from problem
    finally:
        draft.unlink(missing_ok=True)
    return done


def _masked(session: Session, redactor: Redactor) -> Session:
    """The session without its secrets: masked text by text, then without what was masked in any of them."""
    once: Session = with_texts(session, redactor.text)
    guard = Guard(redactor)

    def without_known(text: str) -> str:
        clean = guard.without_known(text)
        if clean != text:
            redactor.counts[KNOWN] = redactor.counts.get(KNOWN, 0) + 1
        return clean

    again: Session = with_texts(once, without_known)
    refuse_secrets("It", (("a text of the session", text) for text in dict.fromkeys(texts_in(again))), guard)
    return again


@cache
def style() -> dict[str, str]:
    """Our styles in one, as a file has them inside, and their hash, by which its policy lets them."""
    text = "\n" + "".join(map(text_of_asset, _STYLES))
    return {"style": text, "style_hash": content_hash(text)}


def _within(session: Session, room: int) -> tuple[list[Block], int, int]:
    """The session's entries as far as there is room, by thread; how many, and how many are left out."""
    calls = {call.seq: call for call in session.tool_calls}
    edits: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for edit in session.edits:
        edits[edit.seq].append(asdict(edit))
    results = {call.result_seq for call in session.tool_calls if call.result_seq is not None}
    kept, left_out = list[tuple[str, Entry]](), 0
    for event in session.events:
        if event.seq in results:
            continue
        if room < 0:  # nothing after it either: a conversation with holes would mislead
            left_out += 1
            continue
        call = calls.get(event.seq)
        if call is None:
            is_person = event.kind == "human_turn"
            is_prose = event.kind == "text" or (is_person and _IS_MARKDOWN.search(event.text or "") is not None)
            entry = _bounded(event, rendered if is_prose else coloured)
            entry.is_prose, entry.turn = is_prose, event.turn if is_person else None
        else:
            entry = Entry(seq=event.seq, kind=event.kind, clock=_clock(event), call=call)
            entry.changes = changes(texts_of(asdict(call), edits[event.seq]), edits[event.seq])
            entry.about = call_summary(call.class_, call.path, call.command, call.arguments)[:MOST_CHARS]
            if call.result_seq is not None and 0 <= call.result_seq < len(session.events):
                path = (call.path or "") if call.class_ == "read" else ""
                as_file = partial(file_text, path=path) if path else coloured
                entry.result = _bounded(session.events[call.result_seq], as_file)
        result = 0 if entry.result is None else len(entry.result.text)
        changed = sum(80 + sum(60 + len(line.text) for line in change.lines) for change in entry.changes)
        room -= 400 + 2 * (len(entry.text) + result + len(entry.about) + changed)
        if room < 0:
            left_out += 1
        else:
            kept.append((event.thread, entry))
    blocks = []
    for thread, of_thread in groupby(kept, key=lambda pair: pair[0]):
        blocks.append(Block(name_of(thread), [entry for _, entry in of_thread]))
    return blocks, len(kept), left_out


def _bounded(event: Event, render: Callable[[str], Markup]) -> Entry:
    text = event.text or ""
    cut_chars = max(event.n_chars, len(text)) - min(len(text), MOST_CHARS)
    shown = render(text[:MOST_CHARS])
    return Entry(seq=event.seq, kind=event.kind, clock=_clock(event), text=shown, cut_chars=cut_chars)


def _clock(event: Event) -> str:
    return (to_iso(event.timestamp) or "")[11:19]


def free_path(out: str, *suffixes: str) -> Path:
    """Return the path of a new file. ExportError for another ending, or a file that is there already."""
    path = Path(out)
    if path.suffix.lower() not in suffixes:
        raise ExportError(f"{out} has the wrong file extension.", f"Use {' or '.join(suffixes)}.")
    if path.exists():
        raise ExportError(f"{out} already exists.", "Choose another file name with -o.")
    return path


# A team's export as a page: made of its data alone, which stands in it, so that it can be made again and compared.

MOST_BYTES_TEAM_PAGE = 64 << 20
_BEGINS, _ENDS = '<pre id="data" tabindex="0">', "</pre>"


def document(made: Team) -> bytes:
    """The page of an export."""
    signals = {signal.path: signal for signal in catalogue().values()}
    filled: dict[str, Any] = {
        "team": made,
        "data": encode(made).decode(),
        "weeks": _together(made.cells, lambda cell: (cell.context, cell.week)),
        "models": _together(made.cells, lambda cell: (cell.context, cell.agent, cell.model)),
        "spreads": [
            (key, list(rows)) for key, rows in groupby(made.spreads, key=lambda spread: (spread.context, spread.agent))
        ],
        "signals": signals,
        **style(),
    }
    return html(Page("shared_team.html.j2", "Coding agents of a team by week", filled), "").encode()


def checked(path: Path) -> Team:
    """Return the team in a file, JSON or page, verified word by word. ExportError where anything else is in it;
    SourceError where it can't be read."""
    try:
        if path.stat().st_size > MOST_BYTES_TEAM_PAGE:
            raise SourceError(
                f"{path} is too large for a team export.", "Name a file that `agentsignals share --team` wrote."
            )
        content = path.read_bytes()
    except OSError as problem:
        raise SourceError(
            f"Cannot read {path}: {problem.strerror}.", "Name a file that `agentsignals share --team` wrote."
        ) from problem
    if not content.lstrip().startswith(b"<"):
        return check(content)
    _, begins, rest = content.decode("utf-8", "replace").partition(_BEGINS)
    made = check(markup.unescape(rest.partition(_ENDS)[0]).encode() if begins else b"")
    if document(made) != content:
        raise ExportError(
            "The page does not match its data. It was edited, or another version of agentsignals wrote it.",
            "Check it with the version that wrote it, or run `agentsignals share --team` again.",
        )
    return made


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
