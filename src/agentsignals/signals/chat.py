"""The measures of SWE-chat: how person and agent took turns, and whose code came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import field

from agentsignals.changes.hunks import WHOLE_TREE, Range, Ranges, extents
from agentsignals.model import CLASSIFIER, ENCODER, RULES, Absent, Edit, ToolCall, Turn
from agentsignals.model.prices import PAID
from agentsignals.signals import NO_JUDGE, Measured, Row, label_detail, label_of, labelled, ratio, signals_with
from agentsignals.views.session import FILE_CLASSES, Evidence, SessionView, closing_question, target_file
from agentsignals.views.working_time import Clock
from agentsignals.words.classifier import features, judged, shipped
from agentsignals.words.lexicon import clean, corrections, other_language, pushback_of
from agentsignals.words.text import language_of

signal = signals_with(origin="swe-chat")


@signal("chat.turns_per_session", "int", "turns")
def turns_per_session(view: SessionView, why: Evidence, user_turn_count: int) -> int:
    """Human prompts, each with everything the agent did until the next: the value of user.user_turn_count.

    Pitfalls: Publish quantiles: the distribution is skewed. SWE-chat leaves machine-made repositories out. The same
    figure as user.user_turn_count.
    Why: Gives the size of a conversation in SWE-chat's unit.
    """
    why.support(view.turns)
    return user_turn_count


@signal("chat.tool_calls_per_turn", "int", "tool_calls", level="turn", priority="P1")
def tool_calls_per_turn(view: SessionView, why: Evidence) -> list[int]:
    """Main-thread tool calls in the response to the turn: rows of `tool_calls` with this `turn`.

    Pitfalls: Calls before the first prompt belong to no turn.
    Why: Shows how much work one prompt starts.
    """
    why.support(view.calls)
    n = Counter([c.turn for c in view.calls])
    return [n[t.turn] for t in view.turns]


BINS = 10
FEWEST_CALLS = 10
"""A shorter session has less than a call for each bin (design/signals.md#tools-by-position)."""


@signal("chat.file_types_touched", "obj", "calls", priority="P2", origin="SWE-chat")
def file_types_touched(view: SessionView, why: Evidence) -> dict[str, int]:
    """Main-thread reads, edits and searches of one file, by the file's extension in lower case; "(none)" without.

    Main-thread calls of class read, search or edit that have a target file. The extension is what follows the last dot
    of the file's name, unless only dots stand before it. Most calls first.

    Pitfalls: Counts calls, not files: a file read ten times counts ten. Searches of whole folders have no file.
    Why: Which languages the work was about, code or prose.
    """
    about_files = [c for c in view.calls if c.path is not None and c.class_ in FILE_CLASSES]
    why.support(c for c in about_files if target_file(c) is not None)
    # A session returns to few files: each is looked at once, by one of its calls.
    samples = {(c.path, c.class_ == "search"): c for c in about_files}
    by_extension: dict[str, int] = {}
    for about, n in Counter([(c.path, c.class_ == "search") for c in about_files]).items():
        path = target_file(samples[about])
        if path is not None:
            stem, dot, extension = path[path.rfind("/") + 1 :].rpartition(".")
            # A dot that the name begins with makes no extension.
            extension = extension.lower() if dot and stem.strip(".") and extension else "(none)"
            by_extension[extension] = by_extension.get(extension, 0) + n
    return dict(sorted(by_extension.items(), key=lambda pair: (-pair[1], pair[0])))


_SESSIONS = ""
"""The key under which pooled values keep the number of sessions; no class of call has it."""


def _pooled(sessions: Sequence[dict[str, list[int]]]) -> list[dict[str, list[int]]]:
    pooled: dict[str, list[int]] = {_SESSIONS: [0]}
    for session in sessions:
        pooled[_SESSIONS][0] += session.get(_SESSIONS, [1])[0]
        for class_, bins in session.items():
            if class_ != _SESSIONS:
                before = pooled.get(class_)
                pooled[class_] = bins if before is None else [a + b for a, b in zip(before, bins, strict=True)]
    return [pooled]


@signal("chat.tool_calls_by_position", "obj", "tool_calls", pool=_pooled, source="derived", priority="P2",
        origin="agentsignals")  # fmt: skip
def tool_calls_by_position(view: SessionView, why: Evidence) -> dict[str, list[int]] | Absent:
    """For each class of call, how many main-thread calls fall into each tenth of the session, first to last.

    Call i (from 0) of n main-thread calls falls into bin floor(10 * i / n), counted by fine class. Absent for fewer
    than ten calls.

    Pitfalls: Position by call, not by time: a session that waits in the middle looks even.
    Why: What chat.tool_composition_by_position adds up.
    """
    n = len(view.calls)
    if n < FEWEST_CALLS:
        return Absent("not_applicable", f"under_{FEWEST_CALLS}_calls")
    why.support(view.calls)
    by_class: dict[str, list[int]] = {}
    for i, class_ in enumerate(view.classes):
        bins = by_class.get(class_)
        if bins is None:
            bins = by_class[class_] = [0] * BINS
        bins[BINS * i // n] += 1
    return by_class


class Share(Row):
    """The share of a class among the calls of one tenth of all sessions; `n` is those calls."""

    position_bin: int
    class_: str = field(name="class")
    share: float
    n: int


@signal("chat.tool_composition_by_position", "list[obj]", "rows", level="corpus", priority="P2", origin="SWE-chat")
def tool_composition_by_position(tool_calls_by_position: Sequence[dict[str, list[int]]]) -> Measured | Absent:
    """Share of each class of call in each tenth of a session, over the calls of all sessions.

    Sum chat.tool_calls_by_position of all sessions by class and bin, and divide by the sum of the bin.

    Pitfalls: Calls are pooled, so long sessions weigh more. Sessions of fewer than ten calls are left out.
    Why: Sessions begin by looking and end by checking: whose do not?
    """
    if not tool_calls_by_position:
        return Absent("not_applicable", "no_sessions")
    (pooled,) = _pooled(tool_calls_by_position)
    (n_sessions,) = pooled.pop(_SESSIONS)
    totals = [sum([bins[at] for bins in pooled.values()]) for at in range(BINS)]
    rows = [
        Share(at, class_, bins[at] / totals[at], totals[at])
        for at in range(BINS)
        for class_, bins in sorted(pooled.items())
        if bins[at]
    ]
    return Measured(rows, {"n_sessions": n_sessions, "n_calls": sum(totals)})


LINES = 100
SECONDS_A_MINUTE = 60


@signal("chat.turn_autonomy_s", "float", "seconds", version=2, level="turn", priority="P2", origin="SWE-chat")
def turn_autonomy_s(view: SessionView, why: Evidence) -> list[float | Absent]:
    """infra.work_time_s within the turn's response: working time of the agent, including subagents.

    Absent without a response, and without its times.

    Pitfalls: Each stretch counts for at most as long as its kind can take (design/signals.md#time-at-work): short waits
    for leave are inside, longer ones and a machine's sleep are not.
    Why: Shows for how long a person can do something else.
    """
    why.support(view.turns)
    clock = view.derived(Clock)
    return [
        clock.between(span).work_s
        if span is not None
        else Absent("missing_field", "timestamp")
        if done
        else Absent("not_applicable", "no_response")
        for span, done in zip(clock.turns if view.turns else [], view.responses, strict=True)
    ]


@signal("chat.cost_per_100_committed_lines", "obj", "per 100 committed lines", version=3, grows_with_output=True,
        source="derived", priority="P1", origin="SWE-chat")  # fmt: skip
def cost_per_100_committed_lines(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    cost_usd: float | Absent,
    wall_time_s: float | Absent,
    work_time_s: float | Absent,
    user_turn_count: int,
) -> Measured | Absent:
    """100 * usd, tokens, minutes, agent_minutes and user_turns / lines of the commits recorded with the session.

    The sum of `checkpoints.total_committed` is the denominator. usd: tokens.cost_usd; tokens: all input and output of
    the main thread; minutes: infra.wall_time_s / 60; agent_minutes: infra.work_time_s / 60; user_turns:
    user.user_turn_count; null where that is absent. Absent without a recorded commit.

    Pitfalls: Publish medians: a session that commits two lines costs a fortune for each hundred. The lines are all of
    the commit, the person's too. A session may go on after its last recorded commit.
    Why: What code costs in money, time and attention, where it was kept.
    """
    recorded = [n for c in view.session.checkpoints if (n := c.total_committed) is not None]
    if not recorded:
        return Absent("not_applicable", "no_commit")
    lines = sum(recorded)
    why.rule(f"attribution recorded with the session: {len(recorded)} commits of {lines} lines together")
    why.support(view.billed_steps)
    why.bill(view.session.steps, PAID)
    why.denominator(view.commits, "commit:")
    if lines <= 0:
        return Absent("not_computable", "zero_denominator")
    used = view.usage
    has_usage = used.input_tokens is not None or used.output_tokens is not None
    took = {
        "usd": None if isinstance(cost_usd, Absent) else cost_usd,
        "tokens": used.all_input + (used.output_tokens or 0) if has_usage else None,
        "minutes": None if isinstance(wall_time_s, Absent) else wall_time_s / SECONDS_A_MINUTE,
        "agent_minutes": None if isinstance(work_time_s, Absent) else work_time_s / SECONDS_A_MINUTE,
        "user_turns": user_turn_count,
    }
    value = {name: None if n is None else LINES * n / lines for name, n in took.items()}
    return Measured(value, {"committed_lines": lines, "checkpoints": len(recorded)})


SHORT_CHARS = 20
"""A shorter text has no language (design/signals.md#language)."""


@signal("chat.prompt_language", "str", "ISO 639-1", level="turn", source="derived", priority="P2")
def prompt_language(view: SessionView, why: Evidence) -> list[str | Absent]:
    """The language of the prompt, without code, links and pasted text.

    Of the first 600 characters of the cleaned text, if it has 20 or more: by script, where most letters are of one
    that is not Latin; else English where two of the words, and 30 % of the different ones, are its small words
    (docs/patterns.md); else the language with most different small words, two at least and one more than any other has.

    Pitfalls: By script and small words, 20 languages: of real prompts 94 in 100 get one. A short prompt full of code
    speaks for none.
    Why: Word patterns work on English only.
    """
    why.support(view.turns)
    return [
        language_of(text) or Absent("not_computable", "n_too_small")
        if len(text := clean(turn.text)) >= SHORT_CHARS
        else Absent("not_applicable", "under_20_characters")
        for turn in view.turns
    ]


_STOPS = frozenset(("stop", "wait"))
"""Correction patterns that, queued while the agent works, are meant to halt it."""


@signal("chat.pushback_type", "enum", "label", level="turn", source="regex", priority="P1")
def pushback_type(view: SessionView, why: Evidence) -> list[Measured | Absent]:
    """rejection, correction, failure_report or non_pushback, by word patterns over the head of the turn.

    The first of rejection, correction, failure_report whose patterns match the head of the turn, else non_pushback.
    Absent for turn 0 and for text that is not English.

    Pitfalls: A lower bound: patterns find about a tenth of what a reader finds. Do not compare with a model's labels.
    Why: Shows how a turn objects to the previous work.
    """
    return [_pushback(t, view.foreign.get(t.turn), why) for t in view.turns]


_BY_PATTERN = {"method": "regex"}


def _pushback(turn: Turn, other: Absent | None, why: Evidence) -> Measured | Absent:
    if turn.turn == 0:
        return Absent("not_applicable", "first_turn")
    if other is not None:
        return other
    label = pushback_of(turn)
    if label.words:
        why.match(turn, f"{label.value} {label.rule}", label.words)
        return Measured(label.value, {"method": "regex", "pattern": label.rule})
    why.counter([turn], "no pattern:")
    return Measured(label.value, _BY_PATTERN)


@signal("chat.hard_interruption", "bool", "flag", level="turn")
def hard_interruption(view: SessionView, why: Evidence) -> list[bool]:
    """True if the person cut the response short: an interrupt, a refused tool call, or a queued "stop".

    True for a turn that has a main-thread event of kind interrupt or a main-thread call with status rejected, or
    whose next turn is a queued_prompt that matches the correction pattern `stop` or `wait`.

    Pitfalls: A permission denied by a rule is not an interruption.
    Why: Shows that the person stopped the agent.
    """
    stops = [
        t for t in view.turns
        if t.kind == "queued_prompt" and t.turn and t.turn not in view.foreign
        and any(name in _STOPS for name, _ in corrections(t.text, t.kind))
    ]  # fmt: skip
    why.support(view.interrupts)
    why.support(view.rejected, "refused:")
    why.support(stops, "queued while the agent worked:")
    cut = {e.turn for e in view.interrupts} | {c.turn for c in view.rejected} | {t.turn - 1 for t in stops}
    why.denominator(view.turns)
    return [t.turn in cut for t in view.turns]


@signal("chat.pushback_rate", "float", "ratio", version=2, basis="heuristic")
def pushback_rate(
    view: SessionView,
    why: Evidence,
    pushback_type: list[Measured | Absent],
    hard_interruption: list[bool],
    user_turn_count: int,
) -> Measured | Absent:
    """Share of human turns with pushback: turns after the first that object or follow a response cut short.

    Numerator: different numbers n > 0 of turns whose chat.pushback_type is rejection, correction or failure_report,
    or for which chat.hard_interruption of turn n - 1 is true; the number behind the last turn counts. Denominator:
    user.user_turn_count without turns n > 0 in another language than English that are not in the numerator
    (`not_judged`). Absent where most turns after the first are in another language.

    Pitfalls: At least so much: its words are chat.pushback_type's, which find about a tenth of what a reader finds.
    Different labellers are not comparable: SWE-chat's 0.44 rests on a model's labels.
    Why: Shows how often the person objects, in words or by stopping the agent.
    """
    if (other := view.mostly_foreign(1)) is not None:
        return other
    soft = {n for n, v in enumerate(pushback_type) if isinstance(v, Measured) and v.value != "non_pushback"}
    hard = {n + 1 for n, cut in enumerate(hard_interruption) if cut}
    either = soft | hard
    unjudged = view.foreign.keys() - either - {0}
    why.support([t for t in view.turns if t.turn in either])
    why.support(
        [t for t in view.turns if t.turn + 1 in hard and t.turn + 1 == len(view.turns)], "its response was cut:"
    )
    why.denominator(view.turns)
    more = {"not_judged": len(unjudged)} if unjudged else {}
    return ratio(len(either), user_turn_count - len(unjudged), soft=len(soft), hard=len(hard), method="regex", **more)


@signal("chat.agent_clarification_stop", "bool", "flag", basis="heuristic", level="turn", priority="P1")
def agent_clarification_stop(view: SessionView, why: Evidence) -> list[Measured | Absent]:
    """True if the response asks by tool, or changes nothing and ends in a question that is not an offer.

    True where a call of class ask belongs to the turn, or where the turn has no row in `edits` (any file) and its
    response ends in a closing question. Absent without a response, and where only the question could tell and the agent
    writes another language.

    Pitfalls: SWE-chat counts asking tools alone (`how` is tool): 1.1 to 2.6 percent of turns. Questions in text come on
    top; some of them only keep the talk going.
    Why: The agent stops and asks instead of guessing.
    """
    asking: dict[int | None, ToolCall] = {}
    for call in view.calls:
        if call.class_ == "ask":
            asking.setdefault(call.turn, call)
    changed = {e.turn for e in view.edits}
    return [_stop(view, turn, asking.get(turn.turn), turn.turn in changed, why) for turn in view.turns]


def _stop(view: SessionView, turn: Turn, call: ToolCall | None, changed: bool, why: Evidence) -> Measured | Absent:
    """Tell whether the agent ended its answer by asking the person: by `call`, the turn's call of a tool that asks, or
    by a closing question. `changed`: the turn has edits, so a question after them offers more work."""
    response = view.responses[turn.turn]
    if not response:
        return Absent("not_applicable", "no_response")
    if call is not None:
        why.support([call])
        return Measured(True, {"how": "tool"})
    if not changed and (other := other_language(view.prose)) is not None:
        return other
    closing = None if changed else closing_question(view, response)
    if closing is None:
        return Measured(False)
    why.matches(view.prose.matches([closing]))
    return Measured(True, {"how": "question"})


VIBE_PERCENT = 99


@signal("chat.agent_percentage", "float", "percent", source="git", priority="P1")
def agent_percentage(view: SessionView, why: Evidence) -> Measured | Absent:
    """The agent's share of the committed lines, 0..100, as the collector recorded it.

    From `checkpoints` with agent_lines or agent_percentage: with one row, its agent_percentage (where
    total_committed or the percentage is above 0); else 100 * sum(agent_lines) / sum(total_committed).

    Pitfalls: The collector's attribution is taken as recorded; the attribution audit tells how good it is.
    Why: Shows who wrote the committed lines.
    """
    recorded = [c for c in view.session.checkpoints if c.agent_lines is not None or c.agent_percentage is not None]
    if not recorded:
        return Absent("missing_artifact", "git_attribution")
    lines = sum(c.agent_lines or 0 for c in recorded)
    total = sum(c.total_committed or 0 for c in recorded)
    detail = {"num": lines, "den": total, "checkpoints": len(recorded)}
    why.rule(f"attribution recorded with the session: {lines} of {total} committed lines are the agent's")
    only = recorded[0].agent_percentage if len(recorded) == 1 else None
    if only is not None and (total or only):
        # The recorded figure also knows the lines the agent removed; a commit that only deletes adds up to 0 of 0.
        return Measured(float(only), detail)
    return Measured(100 * lines / total, detail) if total else Absent("not_computable", "zero_denominator")


@signal("chat.coding_mode", "enum", "label", source="derived", priority="P1")
def coding_mode(why: Evidence, agent_percentage: float) -> str:
    """human_only at 0 percent of chat.agent_percentage, vibe_coding from 99, collaborative between.

    Pitfalls: A cut through a continuous share; 98 and 99 percent are neighbours.
    Why: Who writes the code: the person, the agent, or both.
    """
    why.rule("0: human_only; 99 and more: vibe_coding; otherwise collaborative")
    if agent_percentage <= 0:
        return "human_only"
    return "vibe_coding" if agent_percentage >= VIBE_PERCENT else "collaborative"


@signal("chat.agent_self_overwrite_share", "float", "ratio", source="derived", priority="P2", origin="SWE-chat")
def agent_self_overwrite_share(view: SessionView, why: Evidence) -> Measured | Absent:
    """Lines the agent added and later removed itself in the same session / lines it added.

    Over the `edits` of files of the repository by call, hunks of one call from the bottom up. Each line that an edit
    adds is the agent's; one that replaces `removed` lines from `old_start` on (a whole file: from 1) takes away as many
    of the agent's lines as lie there, at most `removed`. Lines below move with it. Deleting a file takes away all of
    its lines. After an edit without counts or lines the file has none. Absent without an edit.

    Pitfalls: Follows line numbers, not words: within a hunk of several changes the agent's lines are taken to lie
    evenly. A file changed through the shell is followed no further (`unfollowed_lines`).
    Why: Explains lines that no person removed but that did not survive.
    """
    if not view.repo_edits:
        return Absent("not_applicable", "no_edit")
    written = _Written()
    for edit in sorted(view.repo_edits, key=lambda edit: (edit.seq, edit.path, -(edit.old_start or 0))):
        written.edit(edit)
    why.support(written.overwriting, "removes lines of the agent:")
    why.denominator([e for e in view.repo_edits if e.added])
    if not written.added and written.unknown:
        return Absent("missing_field", "line_counts")
    detail = {"edits_without_lines": written.unknown, "unfollowed_lines": round(written.unfollowed)}
    return ratio(round(written.lost, 3), written.added, method="line_map", **detail)


class _WrittenLines(Range):
    """Lines of a file, and how many of these are the agent's."""

    lines: float


class _Written:
    """The agent's lines of each file so far."""

    def __init__(self) -> None:
        self.added = 0
        self.lost = 0.0
        self.unfollowed = 0.0
        self.unknown = 0
        self.overwriting: list[Edit] = []
        self._by_path: dict[str, Ranges[_WrittenLines]] = {}

    def edit(self, edit: Edit) -> None:
        """Follow an edit. The hunks of one call must come from the bottom up: `old_start` is from before the call."""
        path = edit.path
        if path == WHOLE_TREE:
            for written_path in tuple(self._by_path):
                self.unfollowed += self._taken_out(written_path)
            return
        if edit.op == "delete":
            self._lose(edit, self._taken_out(path))
            return
        if edit.added is None:
            self.unknown += 1
            self.unfollowed += self._taken_out(path)
            return
        self.added += edit.added
        at = 1 if edit.whole_file else edit.old_start
        if at is None or edit.start_line is None or edit.removed is None:
            self.unfollowed += self._taken_out(path)
            if edit.whole_file and edit.start_line is not None and edit.added:
                self._by_path[path] = Ranges()
                self._by_path[path].add(_WrittenLines(1, edit.added, float(edit.added)))
        else:
            self._change(edit, at)

    def _change(self, edit: Edit, at: int) -> None:
        """Move the lines written before by an edit of their file, and count those that it removes."""
        n_old, n_new = extents(edit)
        below, moved, within = at + n_old, n_new - n_old, 0.0
        here = self._by_path.setdefault(edit.path, Ranges())
        cut = here.take(at, below - 1)
        here.move(below, moved)
        for span in cut:
            first, last = span.start, span.end
            each = span.lines / (last - first + 1)
            n_above, n_below = max(at - first, 0), max(last - below + 1, 0)
            if n_above:
                here.add(_WrittenLines(first, at - 1, each * n_above))
            if n_below:
                here.add(_WrittenLines(last + moved - n_below + 1, last + moved, each * n_below))
            within += span.lines - each * (n_above + n_below)
        lost = min(within, edit.removed or 0)
        self._lose(edit, lost)
        if n_new > 0:
            here.add(_WrittenLines(at, at + n_new - 1, (edit.added or 0) + within - lost))

    def _lose(self, edit: Edit, lines: float) -> None:
        if lines > 0:
            self.lost += lines
            self.overwriting.append(edit)

    def _taken_out(self, path: str) -> float:
        return sum([span.lines for span in self._by_path.pop(path, ())])


# `agentsignals repo attribute REPO` and `scan REPO` leave their results as labels of the sessions they are about.


def _measured_in_repository(view: SessionView, why: Evidence, task: str, missing: Absent) -> Measured | Absent:
    label = next((j for j in view.judgements(task) if j.turn is None and j.number is not None), None)
    if label is None or label.number is None:
        return missing
    detail = msgspec.json.decode(label.detail) if label.detail else {}
    why.support(view.session.edits)
    why.rule(label.reason or f"measured by {label.labeller}")
    return Measured(label.number, {"labeller": label.labeller, **detail})


@signal("chat.code_survival_rate", "float", "ratio", source="git", priority="P1", status="needs a repository")
def code_survival_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Agent lines in the session's commits / lines that its successful edits added: `number` of the label code_survival
    that `attribute` leaves.

    Pitfalls: Several published rates go by this name; the detail says which lines are divided by which.
    Why: How much of what an agent wrote reached a commit.
    """
    if not view.session.edits:
        return Absent("not_applicable", "no_edit")
    return _measured_in_repository(view, why, "code_survival", Absent("missing_artifact", "git_attribution"))


@signal("chat.vulnerabilities_introduced_per_kloc", "float", "findings_per_kloc", source="git", priority="P3",
        status="needs a repository")  # fmt: skip
def vulnerabilities_introduced_per_kloc(view: SessionView, why: Evidence) -> Measured | Absent:
    """New findings of a scanner in the files that the session's commits changed, per 1 000 added lines: `number` of the
    label vulnerabilities that `scan` leaves.

    Pitfalls: Findings of a static scanner are not confirmed weaknesses; rates of different rule sets don't compare.
    Why: Shows which weaknesses an agent's lines introduced.
    """
    return _measured_in_repository(view, why, "vulnerabilities", Absent("backend_disabled", "scanner"))


labelled(
    "chat.session_success_score",
    "int",
    "score",
    """A judge's score of 0 to 100: goal, final state, efficiency, quality and experience, the ending weighing most.

    Pitfalls: Heavily skewed to the high end in the paper; people agree with each other at an ICC of .50.
    Why: How well the session ended, over five dimensions.
    """,
    task="session_success",
    field="number",
    origin="swe-chat",
)
labelled(
    "chat.repo_domain",
    "str",
    "label",
    """The domain of the session's repository, as a judge named it.

    Pitfalls: A label of the repository, repeated on each of its sessions.
    Why: What kind of software the repository is.
    """,
    origin="swe-chat",
)


@signal("chat.user_persona", "enum", "label", version=2, source="llm_judge", priority="P3", status="needs a judge")
def user_persona(view: SessionView, why: Evidence, user_turn_count: int) -> Measured | Absent:
    """The person's way of working, as a judge named it (task persona): nitpicker, vague_requester, mind_changer or
    other. Absent below two human turns.

    Pitfalls: Mostly `other` outside Claude Code in the published data.
    Why: Shows how the person steers the agent.
    """
    if user_turn_count < 2:
        return Absent("not_applicable", "one_turn")
    return label_of(view, why, "persona")


@signal("chat.prompt_intent", "enum", "label", version=2, level="turn", source="llm_judge", priority="P2")
def prompt_intent(view: SessionView, why: Evidence) -> list[Measured | Absent]:
    """What a prompt asks for: git, test, debug, refactor, understand, connect, create_new_code or other.

    Of turn `n` the judge's label. Without one: the class of the shipped classifier with the highest score, for text
    in English; `probabilities` in the detail are calibrated. Absent for other languages without a judge's label.

    Pitfalls: Without a judge a small classifier decides (method classifier); its classes differ in precision.
    Why: What people ask agents for.
    """
    task = "prompt_intent"
    judged_turns = {judgement.turn: judgement for judgement in view.judgements(task) if judgement.turn is not None}
    model = shipped(task)
    intents: list[Measured | Absent] = []
    for turn in view.turns:
        label = judged_turns.get(turn.turn)
        if label is not None:
            methods = {RULES: "regex", CLASSIFIER: CLASSIFIER, ENCODER: CLASSIFIER}
            method = methods.get(label.labeller.partition(":")[0], "judge")
            intents.append(Measured(label.value, {"method": method, **label_detail(label)}))
        elif (other := view.foreign.get(turn.turn)) is not None:
            intents.append(other)
        elif model is None:
            intents.append(NO_JUDGE)
        else:
            value, probabilities = judged(model, features(turn, None))
            why.support([turn], f"{value}, probability {probabilities[value]:.0%}:")
            detail = {"method": CLASSIFIER, "labeller": CLASSIFIER, "probabilities": probabilities}
            intents.append(Measured(value, detail))
    return intents


@signal("chat.prompt_topic_cluster", "int", "cluster", level="turn", source="embedding", priority="P3",
        status="needs a judge")  # fmt: skip
def prompt_topic_cluster(view: SessionView, why: Evidence) -> list[Measured | Absent] | Absent:
    """The topic cluster of the prompt in the last topic run, -1 if none: `number` of the turn's label of task topic.

    Pitfalls: Clusters follow projects as much as activities; -1 is noise. Numbers mean nothing across runs.
    Why: Shows what prompts are about across a corpus.
    """
    topics = {judgement.turn: judgement for judgement in view.judgements("topic") if judgement.turn is not None}
    if not topics:
        return NO_JUDGE
    return [
        Measured(int(label.number), label_detail(label))
        if (label := topics.get(turn.turn)) is not None and label.number is not None
        else Absent("not_applicable", "not_clustered")
        for turn in view.turns
    ]
