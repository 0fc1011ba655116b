"""Bounds of values, for all formats: numbers that can be summed, times of this age, text that can be stored.

Readers take numbers from records by `count`, `whole`, `amount` and `number`. A value that can't be true becomes
`IMPOSSIBLE`. Behind every reader `validate` makes such values absent and counts the reason in the artifact; the record
stays read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, filterfalse
from math import nan
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

from agentsignals.model import (
    EARLIEST,
    LATEST,
    Artifact,
    Attempt,
    Checkpoint,
    Convention,
    Edit,
    Event,
    HarnessSummary,
    Label,
    PatchedFile,
    Session,
    Statement,
    Step,
    ToolCall,
    Turn,
    Verification,
)

if TYPE_CHECKING:
    from agentsignals.formats import Claim, Input, Reading


MOST_TOKENS = 10**11
"""Tokens of a call or a run: 10,000 prompts of the largest context window sold (10 million tokens). The sum of a column
stays within 64 bits for 90 million rows."""
MOST_USD = 1e6
"""Dollars of a call or a run: 160 full prompts of that size at the highest list price (600 USD a million)."""
LARGEST = 2**63
"""Numbers of 64 bits lie below."""
IMPOSSIBLE = cast("int", nan)
"""Not a number, so that no sum or difference hides it, nor does `max(it, 0)`, in this order."""


def count(value: object) -> int | None:
    """Read a count, such as tokens. `IMPOSSIBLE` if it is not a whole number from 0 to `MOST_TOKENS`."""
    if value is None:
        return None
    n = whole(value)
    return n if n is not None and 0 <= n <= MOST_TOKENS else IMPOSSIBLE


def whole(value: object) -> int | None:
    """Read a whole number of either sign, such as an exit code. `IMPOSSIBLE` if it is none."""
    if value is None:
        return None
    if isinstance(value, str):
        value = spelled_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST < value < LARGEST:
        return IMPOSSIBLE
    return int(value) if value == int(value) else IMPOSSIBLE


def amount(value: object) -> float | None:
    """Read an amount of dollars. `IMPOSSIBLE` if it is no number from 0 to `MOST_USD`."""
    dollars = number(value)
    return dollars if dollars is None else float(dollars) if 0 <= dollars <= MOST_USD else nan


def number(value: object) -> float | None:
    """Read a number. `IMPOSSIBLE` for a truth value, a text, or a number beyond 64 bits."""
    if value is None:
        return None
    if isinstance(value, str):
        value = spelled_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST < value < LARGEST:
        return nan
    return value


_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][-+]?[0-9]{1,2})?\s*")


def spelled_number(text: str) -> int | float | None:
    """Return the number that a text spells. None if it spells none."""
    if _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.strip().lstrip("+-").isdigit() else float(text)


VERSION = 12
"""Part of every format's version. Raise it when a bound changes, another value is checked, or a rule of all formats
changes (how a call ended)."""

MOST_SECONDS = 10 * 366 * 86_400.0
"""Ten years. Coding agents are younger."""
MOST_COUNTED = 2**40
"""Lines, characters or bytes: a tebibyte, more than any file that is read."""
LARGEST_CODE = 2**32
"""Exit codes. Windows has unsigned ones of 32 bits, others have negative ones."""
LARGEST_SCORE = 1e9
"""Rewards and scores of either sign. None beyond thousands is in use, and sums keep their decimals."""
MOST_ID_CHARS = 512
"""Characters of a session id (a UUID has 36). A longer id is cut and gets a digest."""

_BOUNDS: dict[str, tuple[float, float, str]] = {
    **dict.fromkeys(
        ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens",
         "reasoning_tokens"), (0, MOST_TOKENS, "impossible_tokens"),
    ),
    "cost_usd": (0.0, MOST_USD, "impossible_cost"),
    **dict.fromkeys(
        ("timestamp", "started_at", "ended_at", "created_at", "at", "not_before"), (EARLIEST, LATEST, "impossible_time")
    ),
    **dict.fromkeys(
        ("wall_time_s", "agent_time_s", "ran_s", "limit_s", "hooks_s"), (0.0, MOST_SECONDS, "impossible_duration")
    ),
    **dict.fromkeys(("reward", "number"), (-LARGEST_SCORE, LARGEST_SCORE, "impossible_score")),
    "agent_percentage": (0.0, 100.0, "impossible_share"),
    "exit_code": (-LARGEST_CODE, LARGEST_CODE, "impossible_exit_code"),
}  # fmt: skip
REASONS = frozenset(reason for *_, reason in _BOUNDS.values()) | {
    "impossible_count", "impossible_number", "odd_value", "unsound_text", "id_too_long",
    "session_id_of_another", "session_of_copies", "conversations_not_read",
}  # fmt: skip
"""Reasons for refusing a value, or a session whose records were read. Every other reason in `Artifact.skipped_reasons`
is about a skipped record."""
_COUNTED = (0, MOST_COUNTED, "impossible_count")
_OURS = frozenset(
    ("seq", "turn", "step", "input_in_step", "hunk", "n_tokens", "n_chars", "result_tokens", "result_seq", "line",
     "added", "removed")
)  # fmt: skip
"""Counted by this program, so they can't be wrong."""
_LONG = frozenset(("text", "arguments", "command", "path"))
"""Texts of which hardly two are alike. A set of them would read each one whole."""


def refuse(artifact: Artifact | None, reason: str) -> None:
    """Count a value that could not be true. Its record was read, and counts as read."""
    if artifact is not None:
        artifact.skipped_reasons[reason] = artifact.skipped_reasons.get(reason, 0) + 1


def validate(reading: Reading, inputs: list[Input], conventions: Sequence[Convention]) -> Reading:
    """Validate the sessions of a reading, and set the conventions of its agent's logs."""
    artifacts = {source.artifact.artifact_id: source.artifact for source in inputs}
    first = inputs[0].artifact if inputs else None
    for session in reading.sessions:
        session.conventions = session.conventions or list(conventions)
        _check_session(session, artifacts)
    for part in reading.attempts:
        _check_attempt(part, artifacts, first)
    checkpoints, reading.checkpoints = reading.checkpoints, {}
    for session_id, rows in checkpoints.items():
        for row in rows:
            _check(row, first)
        reading.checkpoints.setdefault(valid_id(session_id, first), []).extend(rows)
    return reading


def valid_claim(claim: Claim) -> Claim:
    """Return the claim with keys that the index can hold."""
    claim.keys = [valid_id(key) for key in claim.keys]
    return claim


def valid_id(text: str, artifact: Artifact | None = None) -> str:
    """Return an id that can be stored, of a bounded length."""
    cleaned = _valid_text(text, artifact)
    if len(cleaned) > MOST_ID_CHARS:
        refuse(artifact, "id_too_long")
        digest = hashlib.blake2b(cleaned.encode(), digest_size=8).hexdigest()
        cleaned = f"{cleaned[: MOST_ID_CHARS // 2]}~{digest}"
    return cleaned


def _valid_text(text: str, artifact: Artifact | None = None) -> str:
    """Return a text with a question mark for each half of a surrogate pair. No file and no column can hold one."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(artifact, "unsound_text")
        return text.encode("utf-8", "replace").decode()
    return text


class _Fields:
    def __init__(self, struct: type[Struct]) -> None:
        kinds = {n: str(a).removesuffix(" | None") for n, a in struct.__annotations__.items() if n not in _OURS}
        self.texts = tuple(n for n, kind in kinds.items() if kind == "str")
        self.lists = tuple(n for n, kind in kinds.items() if kind == "list[str]")
        self.numbers = tuple((n, *_BOUNDS.get(n, _COUNTED)) for n, kind in kinds.items() if kind in ("int", "float"))
        within: dict[tuple[float, float], list[str]] = {}
        for name, least, most, _ in self.numbers:
            within.setdefault((least, most), []).append(name)
        self._bounded = [(_columns(names), least, most) for (least, most), names in within.items()]
        self._short = _columns([name for name in self.texts if name not in _LONG])
        self._long = _columns([name for name in self.texts if name in _LONG])

    def all_valid(self, rows: Sequence[Any]) -> bool:
        """Return whether all values of these rows are valid, which is the rule. It checks whole columns, at a fraction
        of the cost of every value by its name. For rows without lists."""
        for columns, least, most in self._bounded:
            values = set(columns(rows))
            values.discard(None)
            # What is no number is in no order with the others, but makes the sum none either.
            if values and not (least <= min(values) and max(values) <= most and sum(values) * 0 == 0):
                return False
        try:
            for text in filterfalse(str.isascii, filter(None, chain(set(self._short(rows)), self._long(rows)))):
                text.encode()
        except UnicodeEncodeError:
            return False
        return True


def _columns(names: Sequence[str]) -> Callable[[Iterable[Any]], Iterable[Any]]:
    if not names:
        return lambda rows: ()
    values = attrgetter(*names)
    return lambda rows: map(values, rows) if len(names) == 1 else chain.from_iterable(map(values, rows))


_FIELDS = {
    struct: _Fields(struct)
    for struct in (
        Turn, Step, Event, ToolCall, Edit, Checkpoint, Label, Session, Attempt, HarnessSummary, Statement, PatchedFile,
        Verification,
    )
}  # fmt: skip


_R = TypeVar("_R", bound=Turn | Step | Event | ToolCall | Edit)
_AT_ONCE = 32_768
"""Rows whose distinct values are in memory at once."""


def _doubtful(rows: Sequence[_R]) -> Iterator[_R]:
    """Yield the rows among which one has a value that is not valid."""
    for at in range(0, len(rows), _AT_ONCE):
        part = rows[at : at + _AT_ONCE]
        if not _FIELDS[part[0].__class__].all_valid(part):
            yield from part


def _check(row: Any, artifact: Artifact | None) -> None:
    """Set impossible numbers of a row to None, and make its texts storable."""
    fields = _FIELDS[row.__class__]
    for name, least, most, reason in fields.numbers:
        value = getattr(row, name)
        if value is not None and not least <= value <= most:
            refuse(artifact, reason)
            setattr(row, name, None)
    for name in fields.texts:
        text = getattr(row, name)
        if text is not None and not text.isascii():
            setattr(row, name, _valid_text(text, artifact))
    for name in fields.lists:
        texts = getattr(row, name)
        if texts:
            setattr(row, name, [_valid_text(text, artifact) for text in texts])


def _check_session(session: Session, artifacts: dict[str, Artifact]) -> None:
    """Replace impossible times and refuse values out of bounds in a session's rows; each is counted with its file."""
    home = artifacts.get(session.artifact_id)
    untimely = False
    for event in _doubtful(session.events):
        untimely = untimely or not _is_timely(event.timestamp)
        _check(event, artifacts.get(event.artifact_id))
    if untimely or not (_is_timely(session.started_at) and _is_timely(session.ended_at)):
        # Impossible times are replaced by those of the events. They are counted, unless an event's was.
        artifact = None if untimely else home
        stamps = [e.timestamp for e in session.events if e.timestamp is not None]
        for name, end in (("started_at", min), ("ended_at", max)):
            if not _is_timely(getattr(session, name)):
                refuse(artifact, "impossible_time")
                setattr(session, name, end(stamps, default=None))
    _check(session, home)
    session.session_id = valid_id(session.session_id, home)
    if session.parent_session_id is not None:
        session.parent_session_id = valid_id(session.parent_session_id, home)
    events = session.events
    for rows in (session.turns, session.steps, session.tool_calls, session.edits):
        for row in _doubtful(rows):
            _check(row, artifacts.get(events[row.seq].artifact_id, home) if row.seq < len(events) else home)
    for step in session.steps:
        if step.cost_usd is None:
            step.cost_source = None
    for beside in (*session.checkpoints, *session.labels):
        _check(beside, home)
    if session.attempt is not None:
        _check_attempt(session.attempt, artifacts, home)


def _is_timely(at: int | None) -> bool:
    return at is None or EARLIEST <= at <= LATEST


def _check_attempt(part: Attempt, artifacts: dict[str, Artifact], first: Artifact | None) -> None:
    """Check an attempt and its parts like other rows; scores that cannot be are dropped and counted."""
    of = [part.session_artifact, *(statement.artifact_id for statement in part.statements)]
    home = next((artifacts[a] for a in of if a in artifacts), first)
    patched = (*(part.patch or ()), *(part.gold_patch or ()))
    for row in (part, part.verification, part.summary, *part.statements, *patched):
        if row is not None:
            _check(row, home)
    for name, value in list((part.rewards or {}).items()):
        if part.rewards is not None and not abs(value) <= LARGEST_SCORE:
            refuse(home, "impossible_score")
            del part.rewards[name]
    part.rewards = part.rewards or None
    for name in ("rewards", "knobs", "observed", "ratings", "localization"):
        setattr(part, name, _plain(getattr(part, name), home))


def _plain(value: Any, artifact: Artifact | None) -> Any:
    """Return free-form data without the numbers and texts that JSON or a column can't hold."""
    if isinstance(value, str):
        return _valid_text(value, artifact)
    if isinstance(value, dict):
        return {_plain(k, artifact): _plain(v, artifact) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, artifact) for v in value]
    if isinstance(value, int | float) and not -LARGEST < value < LARGEST:
        refuse(artifact, "impossible_number")
        return None
    return value
