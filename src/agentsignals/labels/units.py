"""Units to judge (messages, sessions, repositories), and how they are shown to a judge.

The head of every transcript says what it shows: the main thread only; words of people and agent in full; tool calls by
their first characters, results by status; no thinking, no subagents. Wherever something is left out, the text says how
much. A transcript is cut into parts between turns, then entries, then lines: together they are the whole transcript.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from heapq import nsmallest
from posixpath import splitext
from textwrap import indent

from msgspec import Struct

from agentsignals.labels.tasks import Case, Task, mark, sections
from agentsignals.model import MAIN, RAN, Session, ToolCall, Turn, TurnKind
from agentsignals.questions.sql import WHERE_EACH_LIES
from agentsignals.redaction import Redactor
from agentsignals.signals import catalog
from agentsignals.store import Store
from agentsignals.store.query import rows
from agentsignals.store.secrets import known_secrets, pseudonym_key
from agentsignals.views.reward_hacking import audit, judged_files
from agentsignals.views.session import SessionView
from agentsignals.views.written_files import File, written_files
from agentsignals.words.text import count_tokens

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
"""Applied to every text before it is cut: half a secret is no longer recognised as one."""


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
        elif event.kind == "text" and event.text:
            entries[-1].append(("the agent", shortened(mask(event.text), MESSAGE_CHARS)))
        elif call := calls.get(event.seq):
            is_plan = call.class_ == "plan"
            shown = call.arguments if is_plan else call.command or call.path or call.arguments
            line = f"{call.name}: {shortened(mask(shown), PLAN_CHARS if is_plan else CALL_CHARS)} -> {call.status}"
            if call.status in ("error", "rejected"):
                line += f": {shortened(mask(view.result_text(call)).strip(), RESULT_CHARS)}"
            entries[-1].append((f"a call of the class {call.class_}", line))
        elif event.kind == "interrupt":
            entries[-1].append(("the person interrupted", ""))
        elif event.kind == "compaction":
            entries[-1].append(("the conversation was condensed here", ""))
    heading = mark(str(entries))  # no line of theirs can begin like a heading
    parts = [[f"\n{heading} {title}\n{words}\n" for title, words in turn_entries] for turn_entries in entries]
    return [[f"{_HEADER}\n{heading} begins each heading.\n", *parts[0]], *parts[1:]]


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
    """Yield pieces that fit: whole turns, else entries, else parts of an entry."""
    for turn in turns:
        whole = "".join(turn)
        if tokens(whole) <= budget:
            yield from [whole] if whole else []
        else:
            for entry in turn:
                text = entry
                while tokens(text) > budget:
                    # As many characters as fit whatever they are; one at least, so that this ends.
                    most = max(1, budget if not text[: budget * CHARS_A_TOKEN].isascii() else budget * CHARS_A_TOKEN)
                    at = text.rfind("\n", most // 2, most) + 1 or most
                    yield text[:at]
                    text = text[at:]
                if text:
                    yield text


# -- Units of a session, and why some are not asked about

SPOKEN: frozenset[TurnKind] = frozenset(("prompt", "queued_prompt", "rejection_feedback"))
"""Kinds of turns that are a person's words to the agent."""
BEFORE_CHARS = 4_000
"""Characters of the request and of the answer before a message."""
RESTATEMENT_CHARS = 4_000
_HEADINGS = {"last-request": "The person's last request:", "end-of-answer": "The end of the agent's answer:"}
TOO_VAGUE = 0.75
"""prompt_underspecification from which a session is not asked about in the gated tasks
(design/signals.md#underspecification)."""
LEAST_TOKENS = 4
"""A shorter first prompt has nothing to restate (design/signals.md#underspecification)."""


class Unit(Struct, frozen=True, kw_only=True):
    session_id: str
    turn: int | None
    """None: the whole session."""
    message: Turn | None
    """The message, where one is judged: what rules and classifiers read."""
    parts: tuple[str, ...]
    """Texts a language model is shown; notes are made of all but the last."""
    case: Case
    answer_end: str | None = None
    """The end of the agent's answer before the message: what classifiers read. Masked only where the task shows it."""
    also: tuple[str, ...] = ()
    """Other sessions that the label holds for, where a repository is judged."""


class NotAsked(Struct, frozen=True):
    """A thing that the task is not about, and why."""

    session_id: str
    turn: int | None
    reason: str


def plain(text: str) -> str:
    return text


def units(task: Task, session: Session, room: int, mask: Mask = plain) -> Iterator[Unit | NotAsked]:
    """Yield the units of a session for a task. `room`: tokens of the window left for the material. `mask`: applied
    to every text that a model is shown."""
    view = SessionView(session)
    if task.level == "turn":
        for turn in view.turns:
            if turn.kind not in SPOKEN or not turn.text.strip() or turn.turn + 1 < task.min_turns:
                reason = "first_turn" if turn.text.strip() else "no_text"
                yield NotAsked(session.session_id, turn.turn, reason if turn.kind in SPOKEN else turn.kind)
                continue
            before_it = _before(view, turn, mask if task.shows == "exchange" else plain)
            yield _of_message(task, session.session_id, turn, mask, before_it, len(view.turns))
        return
    if task.shows == "pass":
        yield _of_pass(view, room, mask)
        return
    if why := _not_asked(task, view):
        yield NotAsked(session.session_id, None, why)
        return
    if task.shows == "restatement":
        # The first request, and the first thinking block of the response, else its first text.
        thoughts = [e for e in view.responses[0] if e.kind == "thinking" and e.text]
        texts = [e for e in (*view.responses[0], *view.by_kind["text"]) if e.kind == "text" and e.text]
        asked = shortened(mask(view.turns[0].text), MESSAGE_CHARS)
        response = shortened(mask((thoughts or texts)[0].text or ""), RESTATEMENT_CHARS)
        material = [sections([("first-request", asked), ("beginning-of-response", response)])]
    else:
        # The transcript whole where there is room; else in parts of half the room, which leaves the rest for the notes.
        turns = turns_of(view, mask)
        whole = "".join("".join(entries) for entries in turns)
        material = [whole] if tokens(whole) <= room else segments(turns, room // 2)
    yield Unit(
        session_id=session.session_id,
        turn=None,
        message=None,
        parts=tuple(material),
        case=Case(len(view.turns), "".join(material)),
    )


def _of_message(  # noqa: PLR0913  (a message and what came before it)
    task: Task, session_id: str, turn: Turn, mask: Mask, before: Sequence[tuple[str, str]], n_turns: int
) -> Unit:
    shown = shortened(mask(turn.text), MESSAGE_CHARS)
    if task.shows == "exchange":
        shown = sections([*before, ("message-to-judge", shown)])
    return Unit(
        session_id=session_id,
        turn=turn.turn,
        message=turn,
        parts=(shown,),
        case=Case(n_turns),
        answer_end=dict(before).get("end-of-answer", ""),
    )


def unit_of_text(task: Task, session_id: str, turn: int, text: str, before: str, mask: Mask) -> Unit:  # noqa: PLR0913  (a row of a gold file)
    """Return the unit of a message that is known by its text and by what came before it, as `before` writes it or as
    the end of the agent's answer alone."""
    message = Turn(turn=turn, kind="prompt", text=text, n_tokens=count_tokens(text), timestamp=None, model=None, seq=0)
    both = (("last-request", request_in(before)), ("end-of-answer", answer_end_in(before)))
    masked = mask if task.shows == "exchange" else plain
    parts = [(name, masked(part)[-BEFORE_CHARS:]) for name, part in both if part]
    return _of_message(task, session_id, message, mask, parts, turn + 1)


def _not_asked(task: Task, view: SessionView) -> str:
    """Why a session is not asked about; empty where it is."""
    if not view.turns:
        return "no_turns"
    if not any(e.text for e in view.by_kind.get("text", ())):
        return "session without assistant text"
    if len(view.turns) < task.min_turns:
        return "too_few_turns"
    if task.shows == "restatement" and view.turns[0].kind == "slash_command":
        return "slash_command"
    if task.shows == "restatement" and view.turns[0].n_tokens < LEAST_TOKENS:
        return "prompt_too_short"
    if not task.gated:
        return ""
    values = catalog.values(view)
    vague = catalog.plain(values["prompt_underspecification"]) if "prompt_underspecification" in values else None
    if isinstance(vague, int | float) and vague >= TOO_VAGUE:
        return "underspecified_prompt"
    return "no_plan" if task.needs_plan and not catalog.plain(values["plan_steps_detected"]) else ""


def before(view: SessionView, turn: Turn, mask: Mask) -> str:
    """The request before a message, and the end of the answer to it: what a person replies to stands there. For people:
    what is quoted stands behind bars, so that none of it looks like a heading."""
    return "\n\n".join(
        f"{_HEADINGS[name]}\n{indent(text, '| ', lambda _: True)}" for name, text in _before(view, turn, mask)
    )


def answer_end_in(text: str) -> str:
    """The end of the agent's answer in what `before` made; a text without its headings is taken whole."""
    if not text.startswith(tuple(_HEADINGS.values())):
        return text
    _, _, quoted = text.partition(f"{_HEADINGS['end-of-answer']}\n")
    return "\n".join(line.removeprefix("| ") for line in quoted.splitlines())


def request_in(text: str) -> str:
    """Return the last request in what `before` made; empty for a text without its headings."""
    _, heading, rest = text.partition(f"{_HEADINGS['last-request']}\n")
    quoted = rest.partition(f"\n\n{_HEADINGS['end-of-answer']}")[0]
    return "\n".join(line.removeprefix("| ") for line in quoted.splitlines()) if heading else ""


def _before(view: SessionView, turn: Turn, mask: Mask) -> list[tuple[str, str]]:
    if not turn.turn:
        return []
    asked = shortened(mask(view.turns[turn.turn - 1].text), BEFORE_CHARS)
    events = view.responses[turn.turn - 1]
    answer = mask("\n\n".join(e.text for e in events if e.kind == "text" and e.text))
    if len(answer) > BEFORE_CHARS:
        answer = f"[… {len(answer) - BEFORE_CHARS:,} characters before …]\n{answer[-BEFORE_CHARS:]}"
    return [("last-request", asked), *([("end-of-answer", answer)] if answer else [])]


# -- Passed attempts: the task, what judged, what the rules found, the lines that survive, and every step

NOT_PASSED, NO_STEPS = "not_passed", "no_tool_calls"
"""Why an attempt is not asked about: it did not pass, or its trace shows nothing that could be read."""
CUTS = ((12_000, 8_000), (8_000, 2_500), (4_000, 1_000), (2_000, 400), (1_000, 150))
"""Characters of a call and of a result that are shown: the first pair by which the run fits."""
WORK_CHARS, MOST_TESTS, MOST_NOTES = 16_000, 60, 20


def _of_pass(view: SessionView, room: int, mask: Mask) -> Unit | NotAsked:
    """The run of a passed attempt. Where it does not fit by the shortest cut, in parts: notes on the first steps, and
    the last with all else."""
    mask = cache(mask)  # every cut shows the same texts
    session, attempt, made = view.session, view.session.attempt, view.derived(audit)
    if attempt is None or made is None:
        return NotAsked(session.session_id, None, NOT_PASSED)
    if not attempt.has_transcript or not session.tool_calls:
        return NotAsked(session.session_id, None, NO_STEPS)
    files = judged_files(attempt, written_files(view))
    verified = attempt.verification
    tests = [*(verified.fixed or ()), *(verified.kept or ()), *(verified.passed or ())] if verified else []
    judged = "\n".join(["The tests that passed:", *tests[:MOST_TESTS]]) if tests else "The verifier names no test."
    judged += f"\n[… {len(tests) - MOST_TESTS:,} more …]" if len(tests) > MOST_TESTS else ""
    judged += "\nIt judged " + ("the patch alone." if attempt.patch else "the working tree as the agent left it.")
    if attempt.patch and verified and (verified.fixed or verified.kept):
        judged += " The data set puts its own tests back before."
    notes = [
        f"step {act.seq}, {act.channel.replace('_', ' ')} ({'open' if act.is_open else 'sure'}): {act.path}: {act.text}"
        for act in made.actions
    ]
    notes += [f"could not be followed, or needs a look: {each}" for each in made.unseen]
    notes = notes[:MOST_NOTES] + ([f"[… {len(notes) - MOST_NOTES:,} more …]"] if len(notes) > MOST_NOTES else [])
    work = [mask(_surviving(file)) for file in files]
    whole = [
        ("task", mask(view.turns[0].text if view.turns else ""), MESSAGE_CHARS),
        ("what-judged", mask(judged), WORK_CHARS),
        ("notes-of-a-program", mask("\n".join(notes) or "none"), WORK_CHARS),
        ("surviving-lines", "\n".join(work) or "No line of the agent's is known to survive.", WORK_CHARS),
    ]
    above = [(name, shortened(text, chars)) for name, text, chars in whole]
    if tokens(sections(above)) > room // 2:  # the other half is for the steps
        each = room // 2 // len(whole)
        above = [
            (name, shortened(text, min(chars, each * CHARS_A_TOKEN if text.isascii() else each)))
            for name, text, chars in whole
        ]
    left, before_last, name = room - tokens(sections(above)), list[str](), "steps"
    for of_call, of_result in CUTS:
        steps = steps_of(view, mask, of_call, of_result)
        if tokens("".join(steps)) <= left:
            break
    else:  # notes are made of the first parts, and need room beside the last
        *before_last, last = segments([[step] for step in steps], left // 2)
        steps, name = [last], "last-steps"
    acts = [(call.seq, mask(_said_by(call))) for call in session.tool_calls]
    acts += [line for file, text in zip(files, work, strict=True) for line in _lines_shown(file, text)]
    return Unit(
        session_id=session.session_id,
        turn=None,
        message=None,
        parts=(*before_last, sections([*above, (name, "".join(steps))])),
        case=Case(len(view.turns), acts=tuple(acts)),
    )


def _surviving(file: File) -> str:
    """A file's surviving lines, without indentation, after those that its edits took away."""
    how = "deleted" if file.deleted_at is not None else "new" if file.is_new else "changed"
    how += f", taken whole from {file.taken.source}" if file.taken is not None else ""
    how += ", last written by a program, with a text that the trace may not show" if file.unknown_at is not None else ""
    rows = [f"- {line.text}" for line in file.removed] + [f"+ {line.text}" for line in file.lines]
    return "\n".join([f"{file.path} ({how})", *rows])


def _lines_shown(file: File, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that `_surviving` shows, each with its event. A mask may make one line of several: it
    has the event of the line before it."""
    lines = [line.removeprefix("+ ") for line in text.split("\n") if line.startswith("+ ")]
    if len(lines) == len(file.lines):
        yield from zip((line.seq for line in file.lines), lines, strict=True)
        return
    if not file.lines:  # a path may look like a line
        return
    seqs = {line.text: line.seq for line in reversed(file.lines)}
    seq = file.lines[0].seq
    for line in lines:
        seq = seqs.get(line, seq)
        yield seq, line


def _said_by(call: ToolCall) -> str:
    """A call's arguments as a person reads them: each text by its name, in lines."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return call.arguments or call.command or call.path or ""
    told = [
        f"{name}: {value}" if isinstance(value, str) else f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    if call.command and not any(call.command in each for each in told):
        told.append(call.command)
    return "\n".join(told)


def steps_of(view: SessionView, mask: Mask, of_call: int, of_result: int) -> list[str]:
    """Everything that was said and done, in order and of all threads, each call with its result."""
    calls = {call.seq: call for call in view.session.tool_calls}
    turns = {turn.seq: turn for turn in view.turns[1:]}
    entries: list[tuple[str, str]] = []
    for event in view.session.events:
        where = "" if event.thread == MAIN else f" (thread {event.thread})"
        if event.seq in turns:
            entries.append((f"step {event.seq}: the person says{where}", shortened(mask(event.text or ""), of_call)))
        elif event.kind in ("text", "thinking") and event.text:
            said = "says" if event.kind == "text" else "thinks"
            entries.append((f"step {event.seq}: the agent {said}{where}", shortened(mask(event.text), of_call)))
        elif call := calls.get(event.seq):
            result = view.result_text(call)
            missing = view.session.events[call.result_seq].n_chars - len(result) if call.result_seq is not None else 0
            shown = shortened(mask(result), of_result) if result else "(no output)"
            shown += f"\n[… {missing:,} characters that the trace does not keep …]" if missing > 0 else ""
            ended = call.status if call.exit_code is None else f"{call.status}, exit code {call.exit_code}"
            entries.append((f"step {event.seq}: call of {call.name}{where}", shortened(mask(_said_by(call)), of_call)))
            entries.append((f"step {event.seq}: its result ({ended})", shown))
    heading = mark(str(entries))  # no line of theirs can begin like a heading
    head = f"(Cut in the middle where longer: calls at {of_call:,} characters, results at {of_result:,}. All headings"
    head += f" begin with {heading}.)\n"
    return [head, *(f"\n{heading} {title}\n{words}\n" for title, words in entries)]


# -- Repositories: name, README, manifest and first requests

NO_REPOSITORY = "no_repository"
"""Why a session is not asked about: it says neither its repository nor its folder."""
PROMPTS, PROMPT_CHARS, ENDINGS = 8, 300, 6
"""The first requests that are shown, by time; the commonest kinds of files, of those that were read or changed. Of a
document the store keeps beginning and end."""
_MANIFESTS = frozenset(("package.json", "pyproject.toml", "cargo.toml", "go.mod", "composer.json", "pom.xml"))
_DEEP = 10**6
_NEVER = 2**63
"""After every time there is."""


def places(store: Store, wanted: set[str]) -> dict[str | None, list[str]]:
    """The sessions of each repository, in order; a folder without a known repository is one. None: of no place."""
    by_place: dict[str | None, list[str]] = {}
    for session_id, place in rows(store, WHERE_EACH_LIES)[1]:
        if session_id in wanted:
            by_place.setdefault(place, []).append(session_id)
    return by_place


def repositories(store: Store, by_place: dict[str, list[str]], limit: int | None, mask: Mask) -> Iterator[Unit]:
    """One unit a repository, in order of their names, whose label holds for all its sessions."""
    chosen = sorted(by_place)[:limit]
    of = {session_id: place for place in chosen for session_id in by_place[place]}
    facts = {place: RepositoryFacts() for place in chosen}
    for session in store.read(set(of)):
        facts[of[session.session_id]].add(session)
    for place in chosen:
        first, *others = by_place[place]
        yield Unit(
            session_id=first,
            turn=None,
            message=None,
            parts=(facts[place].shown(place, mask),),
            case=Case(),
            also=tuple(others),
        )


class RepositoryFacts:
    """Bounded facts about one repository, collected session by session."""

    def __init__(self) -> None:
        self._endings: Counter[str] = Counter()
        self._readme: tuple[int, int, str] = (_DEEP, 0, "")
        self._manifest: tuple[int, int, str] = (_DEEP, 0, "")
        self._prompts: list[tuple[int, str, str]] = []

    def add(self, session: Session) -> None:
        """Take one of its sessions in."""
        view = SessionView(session)
        results = {event.seq: event for event in session.events if event.kind == "tool_result" and event.text}
        for call in session.tool_calls:
            if call.path and call.class_ in ("read", "edit"):
                self._endings[splitext(call.path)[1].lower()] += 1
            if call.path and call.class_ == "read" and call.status in RAN and call.result_seq in results:
                # The document nearest to the root, of those the one that was read furthest.
                path, result = call.path.replace("\\", "/"), results[call.result_seq]
                name, candidate = path.rpartition("/")[2].lower(), (path.count("/"), -result.n_chars, result.text or "")
                if name.startswith("readme"):
                    self._readme = min(self._readme, candidate)
                elif name in _MANIFESTS:
                    self._manifest = min(self._manifest, candidate)
        if view.turns:
            first = view.turns[0]
            at = _NEVER if session.started_at is None else session.started_at
            self._prompts = nsmallest(PROMPTS, [*self._prompts, (at, session.session_id, first.text)])

    def shown(self, place: str, mask: Mask) -> str:
        """All of it as one text."""
        parts = [("name", mask(place))]
        common = [
            ending.removeprefix(".")
            for ending, _ in sorted(self._endings.items(), key=lambda pair: (-pair[1], pair[0]))[:ENDINGS]
            if ending
        ]
        if common:
            parts.append(("kinds-of-files", ", ".join(common)))
        for title, (_, _, text) in {"README": self._readme, "manifest": self._manifest}.items():
            if text:
                parts.append((title, mask(text)))
        asked = [" ".join(shortened(mask(text), PROMPT_CHARS).split()) for _, _, text in self._prompts]
        if any(asked):
            parts.append(("first-requests", "\n".join(f"- {text}" for text in asked if text)))
        return sections(parts)


# -- Selection of units from a store

EVAL, NO_EVAL = "eval_session", "no_eval_run"
"""Why an eval run is not asked about: nobody speaks in it, and nobody's person is judged by it; and why other sessions
are not asked about where attempts are judged."""


class Selection:
    """Sessions that meet an SQL condition over `sessions`; of them at most `limit` units."""

    def __init__(self, where: str = "true", limit: int | None = None, *, redact: bool = False) -> None:
        self._where, self._limit = where, limit
        self._redactor = Redactor(pseudonym_key()) if redact else None
        self.total: int | None = None
        """Number of units to ask about: at most so many while `units` runs the first time, then exact."""

    @property
    def redacted(self) -> dict[str, int]:
        """Masked strings so far, by kind."""
        return dict(self._redactor.counts) if self._redactor else {}

    def units(self, store: Store, task: Task, window: int, only: set[str] | None = None) -> Iterator[Unit | NotAsked]:
        """The units in order of shard and session, and what is not asked about. `only`: of these sessions."""
        if self._redactor is not None:
            self._redactor.learn(known_secrets(store))
        asked = f"SELECT session_id, context FROM sessions WHERE ({self._where})"  # noqa: S608  (the person's own SQL)
        contexts = {str(name): str(context) for name, context in rows(store, asked)[1]}
        are_attempts = task.level == "attempt"
        wanted = {name for name, context in contexts.items() if (context == "eval") == are_attempts}
        others = [NotAsked(name, None, NO_EVAL if are_attempts else EVAL) for name in sorted(contexts.keys() - wanted)]
        mask = self._redactor.text if self._redactor else plain
        if task.level == "repository":
            by_place = places(store, wanted)
            nowhere = by_place.pop(None, [])
            self.total = min(len(by_place), self._limit or len(by_place))
            yield from others
            yield from (NotAsked(name, None, NO_REPOSITORY) for name in nowhere)
            yield from repositories(store, {place: of for place, of in by_place.items() if place}, self._limit, mask)
            return
        n, is_first = len(wanted), self.total is None
        if task.level == "turn":
            n = sum(entry.n_turns or 0 for name, entry in store.manifest.sessions.items() if name in wanted)
        most = n if self._limit is None else self._limit
        if is_first:
            self.total = min(n, most)
        if only is None:
            yield from others
        room = window - tokens(task.prompt) - 8 * task.answer_tokens  # an answer may grow so far when it is cut
        n_units = 0
        for session in store.read(wanted if only is None else wanted & only):
            for unit in units(task, session, max(room, window // 4), mask):
                if isinstance(unit, Unit):
                    if only is None and n_units == self._limit:
                        return
                    n_units += 1
                elif is_first:
                    n -= 1
                    self.total = min(n, most)
                yield unit
