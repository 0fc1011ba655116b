"""The pictures of a session that is handed on: out of the lines of its trace, as they are."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import NamedTuple

from agentsignals.model import Session
from agentsignals.ui.raw_line import Picture, raw_line
from agentsignals.ui.reading import Reading
from agentsignals.ui.timeline import IMAGE, IMAGE_FILE

MOST_BYTES = 12 << 20
"""Of all pictures of a file, as much as of its conversation."""


class Pictures(NamedTuple):
    """The pictures of a session by event, as numbers, and what each is."""

    of_event: dict[int, list[int]]
    each: list[Picture]
    left_out: int
    """For which there was no room."""
    mark: str
    """Stands for them in the page until all of it was looked through: in so much Base64 a pattern would see keys. No
    text can hold it, as it is drawn by chance."""

    def put_into(self, document: str) -> str:
        """The page with its pictures."""
        return re.sub(rf'src="{self.mark}:(\d+)"', lambda at: f'src="{self.each[int(at[1])].source}"', document)


def pictures_of(reading: Reading, session: Session) -> Pictures:
    """What there is of them, where the trace is still as it was read."""
    made = Pictures({}, [], 0, f"picture-{secrets.token_hex(16)}")
    room = MOST_BYTES
    for seq in sorted(set(_candidates(session))):
        for picture in raw_line(reading, session.session_id, seq).pictures:
            room -= len(picture.source)
            if room < 0:
                made = made._replace(left_out=made.left_out + 1)
            else:
                made.of_event.setdefault(seq, []).append(len(made.each))
                made.each.append(picture)
    return made


def _candidates(session: Session) -> Iterator[int]:
    """Events whose line may hold pictures, as on the page of a session."""
    attached = {turn.seq for turn in session.turns if turn.kind == "attachment"}
    for event in session.events:
        if event.seq in attached or IMAGE.search(event.text or ""):
            yield event.seq
    for call in session.tool_calls:
        if call.result_seq is None or not 0 <= call.result_seq < len(session.events):
            continue
        is_empty = call.class_ in ("mcp", "other") and not session.events[call.result_seq].n_chars
        if is_empty or IMAGE_FILE.search(call.path or ""):
            yield call.result_seq
