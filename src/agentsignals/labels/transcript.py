"""A session as a judge reads it, and its parts where it is longer than the judge's window.

What is shown is said at the top of every transcript: the main thread only; people's and the agent's words whole; tool
calls by their first characters, results by how they ended; thinking and what subagents did not at all. Wherever
something was left out, the text says how much. A transcript is cut into parts between turns, a turn that is too long
between its entries, an entry that is too long at a line's end or in the middle of one: the parts together are the
transcript, character by character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentsignals.labels.task import mark
from agentsignals.model import Event, ToolCall
from agentsignals.views.session import SessionView

CALL_CHARS = 400
RESULT_CHARS = 300
PLAN_CHARS = 8000
"""A plan is what is judged: shown longer than other calls."""
MESSAGE_CHARS = 12_000
"""Longer messages of a person are pasted logs and files: their middle is left out, and said to be."""
CHARS_A_TOKEN = 3
"""Fewer than the usual four: code and paths take more tokens than prose, and a window that is overrun is an error."""
_HEADER = (
    f"(Main thread only. People's and the agent's words are whole up to {MESSAGE_CHARS:,} characters; of tool calls the"
    f" first {CALL_CHARS} characters are shown, of plans {PLAN_CHARS:,}; of results how they ended and the first"
    f" {RESULT_CHARS} characters of those that failed. Thinking and subagents' work are not shown.)\n"
)


def tokens(text: str) -> int:
    """An upper estimate of a text's tokens: a third of its ASCII characters, and every other one by itself."""
    others = 0 if text.isascii() else sum(1 for c in text if c > "\x7f")
    return (len(text) - others + CHARS_A_TOKEN - 1) // CHARS_A_TOKEN + others


def shortened(text: str, chars: int) -> str:
    """The text; of a longer one beginning and end, and between them how much is missing."""
    if len(text) <= chars:
        return text
    head, tail = chars * 2 // 3, chars // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


Mask = Callable[[str], str]
"""What is done to every text before anything is cut: half a secret is no longer recognised as one."""


def turns_of(view: SessionView, mask: Mask) -> list[list[str]]:
    """The transcript's entries, by turn. What happened before the first turn belongs to it."""
    calls = {c.seq: c for c in view.calls}
    by_seq = {t.seq: t for t in view.turns}
    entries: list[list[tuple[str, str]]] = [[]]
    for event in view.events:
        turn = by_seq.get(event.seq)
        if turn is not None:
            if turn.turn:
                entries.append([])
            words = shortened(mask(turn.text), MESSAGE_CHARS)
            entries[-1].append((f"turn {turn.turn}, the person ({turn.kind})", words))
        elif entry := _entry(view, event, calls, mask):
            entries[-1].append(entry)
    heading = mark(str(entries))  # no line of theirs can begin like a heading
    parts = [[f"\n{heading} {title}\n{words}\n" for title, words in turn_entries] for turn_entries in entries]
    return [[f"{_HEADER}\n{heading} begins each heading.\n", *parts[0]], *parts[1:]]


def _entry(view: SessionView, event: Event, calls: dict[int, ToolCall], mask: Mask) -> tuple[str, str] | None:
    if event.kind == "text" and event.text:
        return "the agent", shortened(mask(event.text), MESSAGE_CHARS)
    if event.seq in calls:
        return f"a call of the class {calls[event.seq].class_}", _call(view, calls[event.seq], mask)
    if event.kind == "interrupt":
        return "the person interrupted", ""
    if event.kind == "compaction":
        return "the conversation was condensed here", ""
    return None


def _call(view: SessionView, call: ToolCall, mask: Mask) -> str:
    is_plan = call.class_ == "plan"
    shown = call.arguments if is_plan else call.command or call.path or call.arguments
    shown = shortened(mask(shown), PLAN_CHARS if is_plan else CALL_CHARS)
    line = f"{call.name}: {shown} -> {call.status}"
    if call.status in ("error", "rejected"):
        line += f": {shortened(mask(view.result_text(call)).strip(), RESULT_CHARS)}"
    return line


def segments(turns: Iterable[list[str]], budget: int) -> list[str]:
    """The transcript in parts of at most `budget` estimated tokens, filled in order."""
    parts: list[str] = []
    held: list[str] = []
    used = 0
    for piece in _pieces(turns, max(budget, 1)):
        size = tokens(piece)
        if held and used + size > budget:
            parts.append("".join(held))
            held, used = [], 0
        held.append(piece)
        used += size
    return [*parts, "".join(held)] if held else parts


def _pieces(turns: Iterable[list[str]], budget: int) -> Iterable[str]:
    """What is not cut: turns where they fit, else entries where they fit, else stretches of them."""
    for turn in turns:
        whole = "".join(turn)
        if tokens(whole) <= budget:
            yield from [whole] if whole else []
        else:
            for entry in turn:
                yield from _stretches(entry, budget)


def _stretches(text: str, budget: int) -> Iterable[str]:
    while tokens(text) > budget:
        # As many characters as fit whatever they are; one at least, so that this ends.
        most = max(1, budget if not text[: budget * CHARS_A_TOKEN].isascii() else budget * CHARS_A_TOKEN)
        at = text.rfind("\n", most // 2, most) + 1 or most
        yield text[:at]
        text = text[at:]
    if text:
        yield text
