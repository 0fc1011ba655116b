"""The course of a session: corrections, repetitions, drift from the request, and its failure mode."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import Any

from agentsignals.model import UNSPOKEN, Absent, ToolCall, Turn, decode_roles
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, ratio, signals_with
from agentsignals.views.passages import DIGITS, WINDOW_TURNS, Passages, cosine_distance, request_vectors
from agentsignals.views.plans import MOST_STEPS, Edges, Plan, distance, plans, text_steps
from agentsignals.views.repeats import STATUS, UNREPEATABLE, canonical, single_spaced
from agentsignals.views.session import Evidence, SessionView, target_file
from agentsignals.words.lexicon import (
    ACTIONS,
    acceptance,
    clean,
    corrections,
    failure_report,
    seed_corrections,
)
from agentsignals.words.text import count_tokens, language_of, lowered
from agentsignals.words.vectors import Vectors, split_words

signal = signals_with(origin="Agent Signals")


@signal("dynamics.correction_ratio", "float", "ratio", source="regex")
def correction_ratio(view: SessionView, why: Evidence, user_turn_count: int) -> Measured | Absent:
    """Human turns after the first whose head matches a correction pattern, out of all human turns in English.

    Numerator over rows of `turns`, denominator user.user_turn_count without the turns in another language
    (`not_judged`). Absent where most turns are in another language.

    Pitfalls: A lower bound: patterns find a tenth to a third of what a reader finds. Aggregate as sum over sum.
    Why: How often the person had to set the agent right.
    """
    if (other := view.mostly_foreign()) is not None:
        return other
    corrected: list[int] = []
    for turn in view.turns[1:]:
        matches = corrections(turn.text, turn.kind) if turn.turn not in view.foreign else ()
        if matches:
            corrected.append(turn.turn)
        for pattern, matched in matches:
            why.match(turn, pattern, matched)
    judged = [t for t in view.turns if t.turn not in view.foreign]
    why.denominator(judged)
    literal = sum(1 for t in judged if t.is_prompt and seed_corrections(t.text))
    n = user_turn_count - len(view.foreign)
    more = {"not_judged": len(view.foreign)} if view.foreign else {}
    return ratio(len(corrected), n, turns=corrected, raw_seed=literal / n if n else None, **more)


@signal("dynamics.objections", "obj", "turn indexes", source="regex", origin="agentsignals")
def objections(
    view: SessionView,
    why: Evidence,
    pushback_type: list[Measured | Absent],
    hard_interruption: list[bool],
    correction_ratio: float | Absent,
) -> dict[str, list[int]] | Absent:
    """The turns (0-based) that correct the agent, and those that push back: object in words, or follow a response that
    was cut; a last response that was cut counts as a turn behind the last.

    corrections: turns > 0 whose head matches a correction pattern. pushback: the numbers of chat.pushback_rate's
    numerator. Absent where dynamics.correction_ratio is.

    Pitfalls: Found by word patterns: lower bounds.
    Why: The turns behind dynamics.correction_ratio and chat.pushback_rate.
    """
    if isinstance(correction_ratio, Absent):
        return correction_ratio
    corrected = [t.turn for t in view.turns[1:] if t.turn not in view.foreign and corrections(t.text, t.kind)]
    soft = {n for n, v in enumerate(pushback_type) if isinstance(v, Measured) and v.value != "non_pushback"}
    hard = {n + 1 for n, cut in enumerate(hard_interruption) if cut}
    why.support([t for t in view.turns if t.turn in soft or t.turn in hard], "pushback:")
    why.support([view.turns[n] for n in corrected], "correction:")
    why.denominator(view.turns)
    return {"corrections": corrected, "pushback": sorted(soft | hard)}


@signal("dynamics.repeated_calls", "obj", "tool_calls", version=3, source="derived", origin="agentsignals")
def repeated_calls(view: SessionView, why: Evidence) -> dict[str, Any]:
    """How many calls repeat an equal one with no successful edit in between (n of of), or at all (equal), and the
    longest run of equal calls with no successful edit in between (stale_max).

    Counted are main-thread calls without class plan, task, ask and purpose poll. Two calls are equal if they have one
    tool name, `path` and arguments, in any order; of a command with runs of blanks as one, and without the arguments of
    role manner (`argument_roles`: description, time limit, background). n: calls whose previous equal call has no
    successful edit between the two. equal: calls that have an equal one before. stale_max leaves out commands that
    begin with git status, git log, git diff, ls or pwd, also behind `cd DIR &&`, and is 1 where nothing repeats, 0
    without a call. stale_call, only where that is 2 or more, is their tool. A successful edit is a row of the main
    thread's `edits` (any file) whose call did not fail.

    Pitfalls: Whether something changed is seen of the agent's edits only, not of a server that starts.
    Why: The raw counts behind dynamics.repetition_rate; stale_max tells a loop from a habit.
    """
    calls = _repeatable(view)
    repeated = _repeated(calls)
    edits = view.edited if repeated else []
    stale, worst = 1, None
    for same in repeated:
        first = same[0]
        if first.command is not None and STATUS.match(first.command):
            continue
        run, before = 0, None
        for call in same:
            done = bisect_left(edits, call.seq)
            run = run + 1 if done == before else 1
            before = done
            if run > stale:
                stale, worst = run, call
    again = _in_vain(view, repeated) if repeated else []
    why.support(again, "repeats an earlier call:")
    why.denominator(calls)
    named = {"stale_call": worst.name} if worst is not None and stale > 1 else {}
    return {
        "n": len(again),
        "of": len(calls),
        "equal": sum([len(same) - 1 for same in repeated]),
        "stale_max": stale if calls else 0,
        **named,
    }


@signal("dynamics.repetition_rate", "float", "ratio", basis="heuristic", version=4, source="derived")
def repetition_rate(view: SessionView, why: Evidence, repeated_calls: dict[str, Any]) -> Measured | Absent:
    """Share of calls that repeat an earlier call, with no successful edit in between. Planning, delegating, questions
    and polling are not counted.

    Pitfalls: For loops look at stale_max; the rate tells the cost. With `equal` as numerator a test run again after an
    edit is a repeat, too.
    Why: Repeating a call without progress is a sign of a loop.
    """
    counted = dict(repeated_calls)
    if why.is_kept:
        calls = _repeatable(view)
        why.support(_in_vain(view, _repeated(calls)), "repeats an earlier call:")
        why.denominator(calls)
    why.rule(f"stale_max: {counted['stale_max']} equal calls with no successful edit in between")
    return ratio(counted.pop("n"), counted.pop("of"), method="signature", **counted)


def _repeatable(view: SessionView) -> list[ToolCall]:
    """Leave out planning, delegating and asking, which repeat by nature, and polling, which is waiting."""
    return [c for c in view.calls if c.class_ not in UNREPEATABLE and c.purpose != "poll"]


def _repeated(calls: list[ToolCall]) -> list[list[ToolCall]]:
    """Group calls with the same tool and arguments, where there are several. Arguments are compared only where the
    cheaper facts are equal: most calls have no equal, and many are long."""
    first: dict[tuple[str, str | None, int | str], int] = {}
    alike: dict[int, list[int]] = {}
    for n, c in enumerate(calls):
        # Equal arguments are equally long, in whatever order they were given; a command's may say how to run it, too.
        at = first.setdefault((c.name, c.path, len(c.arguments) if c.command is None else single_spaced(c.command)), n)
        if at != n:
            alike.setdefault(at, [at]).append(n)
    groups: list[list[int]] = []
    for group in alike.values():
        raw = {calls[n].arguments for n in group}
        # Calls of one tool: their arguments are called alike.
        manner = decode_roles(calls[group[0]].argument_roles).manner
        plain = {a: canonical(a, manner) for a in raw} if len(raw) > 1 else {}
        same: dict[object, list[int]] = {}
        for n in group:
            same.setdefault(plain.get(calls[n].arguments), []).append(n)
        groups += [numbers for numbers in same.values() if len(numbers) > 1]
    return [[calls[n] for n in numbers] for numbers in sorted(groups)]


def _in_vain(view: SessionView, repeated: list[list[ToolCall]]) -> list[ToolCall]:
    """Return the calls that repeat an equal one with no successful edit in between."""
    edits = view.edited if repeated else []
    return [
        call
        for same in repeated
        for before, call in pairwise(same)
        if bisect_left(edits, before.seq) == bisect_left(edits, call.seq)
    ]


MOST_TOKENS = 400
"""A longer message counts as one of this length: it holds a paste that cleaning did not recognise."""
FEWEST_TURNS = 3


@signal("dynamics.user_msg_length_slope", "float", "tokens per turn", priority="P1")
def user_msg_length_slope(view: SessionView, why: Evidence) -> Measured | Absent:
    """Least-squares slope of message length over the turns; cleaned text, at most 400 tokens each, plan hand-offs and
    bare attachments left out.

    Length: tokens of the cleaned text, at most 400. Over the turns that are not of kind plan_handoff, attachment or
    scripted_prompt, numbered 0, 1, 2 in order; absent for fewer than three.

    Pitfalls: First prompts are the longest, so most healthy sessions fall: read excl_first_norm, where less than 0.5
    either way is flat.
    Why: Growing messages may repeat what was misunderstood; shrinking ones may mean trust or giving up.
    """
    messages = [t for t in view.turns if t.kind not in UNSPOKEN]
    if len(messages) < FEWEST_TURNS:
        return Absent("not_applicable", "fewer_than_3_turns")
    lengths = [
        min(t.n_tokens if (kept := clean(t.text)) == t.text else count_tokens(kept), MOST_TOKENS) for t in messages
    ]
    why.support(messages)
    why.rule(f"lengths: {', '.join(map(str, lengths[:50]))}")
    slope, norm = _slope(lengths)
    detail: dict[str, float | int | None] = {"n": len(messages), "norm": norm}
    if len(messages) > FEWEST_TURNS:
        detail["excl_first"], detail["excl_first_norm"] = _slope(lengths[1:])
    return Measured(slope, detail)


def _slope(values: list[int]) -> tuple[float, float | None]:
    """Return the slope, and its change over the whole series as a share of the mean; None when that is 0."""
    n = len(values)
    middle, mean = (n - 1) / 2, sum(values) / n
    slope = sum([(i - middle) * v for i, v in enumerate(values)]) / (n * (n * n - 1) / 12)
    return slope, (slope * (n - 1) / mean if mean else None)


_TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "testdata"))


@signal("dynamics.gd_actions", "float", "ratio", version=3, source="derived", priority="P2", context="both",
        hindsight="the gold patch")  # fmt: skip
def gd_actions(view: SessionView, why: Evidence) -> Measured | Absent:
    """Calls that change files outside the scope / calls that change files. In scope is what lies in a folder that a
    human turn names or the first response with a change touched, and tests next to it; of an eval attempt, what the
    gold patch changes.

    Counted are main-thread calls of fine class edit or shell_write on files of the repository (the `edits` of the call,
    else its `path`), failed ones included, in the responses to turns that say where to work (as in
    anticipation.unrequested_files). Inside: the call's files all lie in a folder of the first response with a change
    (of a test, test, tests, __tests__ and testdata count as the folder above), or are named. Absent without any, and
    where all lie outside.

    Pitfalls: An adaptation to code, not the paper's number (arXiv 2505.02709), and without a judge only a trend. What
    the first response changed is in scope.
    Why: Work outside the scope, counted where it happens: in the calls.
    """
    changed = view.changed_files
    actions = [
        (call, paths)
        for call, class_ in zip(view.calls, view.classes, strict=True)
        if class_ in ("edit", "shell_write")
        and (paths := changed.get(call.seq) or ({call.path} if call.path and view.in_repo(call.path) else None))
    ]
    if not actions:
        return Absent("not_applicable", "no_edit")
    if (attempt := view.session.attempt) is not None:
        if not attempt.gold_patch:
            return Absent("missing_artifact", "gold_patch")
        gold = {path for file in attempt.gold_patch for path in (file.path, file.old_path)}
        outside = [call for call, paths in actions if gold.isdisjoint(paths)]
        why.support(outside, "outside:")
        why.denominator([call for call, _ in actions])
        why.rule("files that the gold patch changes are in scope")
        return ratio(len(outside), len(actions), method="gold_patch", confidence="low")
    began = next((call.turn for call, _ in actions if call.seq in changed), None)
    folders = {
        p.rpartition("/")[0] for call, paths in actions if call.turn == began and call.seq in changed for p in paths
    }
    actions = [(call, paths) for call, paths in actions if call.turn in view.scoped_turns]
    outside = [
        call
        for call, paths in actions
        if not all(_scope_folder(p, folders) in folders or view.mentions.place(p) for p in paths)
    ]
    if len(outside) == len(actions):
        # What covers nothing at all is no scope: nobody could tell drift from a request that names no place.
        return Absent("not_computable", "no_reference")
    why.support(outside, "outside:")
    why.denominator([call for call, _ in actions])
    why.rule(
        "folders named by a turn, or changed by the first response that changed any, and tests in them, are in scope"
    )
    return ratio(len(outside), len(actions), method="fallback", confidence="low")


def _scope_folder(path: str, folders: set[str]) -> str:
    """Return a file's folder; for tests in a folder of their own the folder that holds it, where that is in scope."""
    folder = path.rpartition("/")[0]
    above, _, name = folder.rpartition("/")
    return above if name in _TEST_FOLDERS and folder not in folders else folder


MOST_ITEMS = 60
MOST_TOLD = 20
_ITEM = deferred_pattern(
    r"(?<![\w./-])(?:[\w@-][\w.@-]{0,80}/){0,12}[\w-][\w.-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,7}\b(?!\(|/)"
    r"|\b[A-Za-z_]\w{1,80}\(\)"
    r"|(?<![\w./-])[A-Za-z][a-z0-9]{0,40}(?:[A-Z][a-z0-9]{1,40}){1,8}\b(?![./])"
    r"|(?<![\w./-])[A-Za-z0-9]{1,40}(?:_[A-Za-z0-9]{1,40}){1,8}\b(?![./])"
)
"""A file, a call, an identifier in camel or snake case."""
_MAY_BE_ITEM = deferred_pattern(r"[\w.-]\.[A-Za-z]|\w\(\)|[A-Za-z0-9][A-Z][a-z0-9]|[A-Za-z0-9]_[A-Za-z0-9]")
"""A part that every item has, also after masking: a mask removes words, and adds none that is an item."""
_OF_NAME = ("_", "-", ".")
_NO_ITEMS = frozenset(("GitHub", "GitLab", "JavaScript", "TypeScript", "GraphQL", "DevOps", "Node.js", "e.g", "i.e"))
"""Names of products, and abbreviations, that look like something to change."""
_LOOKS_ONLY = deferred_pattern(
    r"\W*(?:\*\*)?(?:(?:first|then|next|finally),? )?(?:read|check|look|review|inspect|explore|search|find|understand"
    r"|investigat\w+|analy[sz]e|identify|examine|locate|confirm|verify|run|compare|trace|audit|reproduce)\b",
    re.IGNORECASE,
)


@signal("dynamics.gd_inaction", "float", "ratio", source="derived", priority="P2")
def gd_inaction(view: SessionView, why: Evidence) -> Measured | Absent:
    """Files, functions and identifiers that the first plan names, outside steps that only look, and that no later edit,
    shell write or test names / all of them.

    The plan is turn 0 where its kind is plan_handoff, else the first plan of dynamics.plan_ged. Its items: file names,
    `name()`, CamelCase and snake_case words (docs/patterns.md) of steps that do not begin with a verb of looking, the
    first 60. An item is touched where a later main-thread call of fine class edit, shell_write or test, not rejected,
    changed a file of that name or has the whole word in its arguments. Absent without items, and for a plan in another
    language than English.

    Pitfalls: An adaptation to code, not the paper's number (arXiv 2505.02709). Names in prose: what was renamed counts
    as untouched; so do findings that a handed-over plan lists like steps. Few plans name what they change.
    Why: Shows forgotten parts of the plan.
    """
    # The plan that the person hands over first, else the agent's first plan.
    made: ToolCall | Turn | None = view.turns[0] if view.turns and view.turns[0].kind == "plan_handoff" else None
    steps, source = text_steps(made.text) if isinstance(made, Turn) else [], "handoff"
    if not steps:
        first = next(iter(plans(view)), None) if any(c.class_ == "plan" for c in view.calls) else None
        made, steps, source = (first.call, first.steps, first.source) if first is not None else (None, [], "")
    if (language := language_of("\n".join(steps))) not in (None, "en"):
        return Absent("not_computable", f"language: {language}")
    from agentsignals.redaction import redacted  # noqa: PLC0415  (loaded where a value is asked for, not in each run)

    names: dict[str, None] = {}
    for step in steps:
        if _MAY_BE_ITEM.search(step) and not _LOOKS_ONLY.match(step):
            # Masked first: a part of a mail address looks like a file.
            names.update(dict.fromkeys(name.removesuffix("()") for name in _ITEM.findall(redacted(step))))
    items = [name for name in names if name not in _NO_ITEMS][:MOST_ITEMS]
    if made is not None:
        why.support([made], "the plan:")
    if made is None or not items:
        return Absent("not_applicable", "no_plan_items")
    changed = view.changed_files
    later = [
        call
        for call, class_ in zip(view.calls, view.classes, strict=True)
        if call.seq > made.seq and class_ in ("edit", "shell_write", "test") and call.status != "rejected"
    ]
    files = {path for call in later for path in changed.get(call.seq, ())}
    arguments = "\n".join([c.arguments for c in later])
    untouched = [
        item for item in items
        if not (("." in item and any(path == item or path.endswith("/" + item) for path in files))
                or _contains_name(arguments, item))
    ]  # fmt: skip
    why.denominator(later, "after the plan:")
    why.rule(f"untouched: {', '.join(untouched[:MOST_TOLD]) or 'nothing'}")
    return ratio(len(untouched), len(items), source=source, untouched=untouched[:MOST_TOLD])


def _contains_name(text: str, name: str) -> bool:
    """Return whether a text has the whole name: not the end of `other_name`, nor the beginning of `name2`."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or before in _OF_NAME or after.isalnum() or after == "_"):
            return True
        at = text.find(name, at + 1)
    return False


SAME_STEP = 0.5
"""F1 of the sets of words of two steps from which on they are one (design/signals.md#plans)."""


@signal("dynamics.plan_ged", "float", "normalised GED", source="derived", priority="P2")
def plan_ged(view: SessionView, why: Evidence) -> Measured | Absent:
    """Graph edit distance of the session's first and last plan, out of taking one apart and building the other anew: 0
    the same steps in the same order, 1 nothing in common.

    Plans are main-thread calls of class plan, each with the argument of role steps (`argument_roles`: a list) or plan
    (a text with two numbered or bulleted lines, docs/patterns.md); tasks added one by one are one plan, and each change
    of a task another. Nodes are the first 12 steps, edges join successive steps; a change of a node or edge costs 1,
    none where two steps have equal words (2 * common / all words >= 0.5). The cost over all nodes and edges of both.
    Absent without a plan; 0 with one.

    Pitfalls: Plans in prose and to-do lists of one plan differ in words: see `sources`. RECAP compares plans of two
    writers and has no threshold. A second task in the same session brings a plan of its own.
    Why: A plan that changed completely suggests a misunderstood task.
    """
    versions = plans(view)
    if not versions:
        return Absent("not_applicable", "no_plan")
    first, last = versions[0], versions[-1]
    sizes = [min(len(plan.steps), MOST_STEPS) for plan in (first, last)]
    why.support([first.call], "first plan:")
    if len(versions) == 1:
        why.rule("only one plan state: 0")
        return Measured(0.0, {"single_plan": True, "raw": 0, "steps": sizes[:1], "sources": [first.source]})
    why.support([last.call], "last plan:")
    words, other = ([frozenset(split_words(step)) for step in plan.steps[:MOST_STEPS]] for plan in (first, last))
    alike = [[a == b or 2 * len(a & b) >= SAME_STEP * (len(a) + len(b)) for b in other] for a in words]
    apart = distance(alike, sizes[1], _edges(first), _edges(last))
    steps_alike = sum(any(row) for row in alike)
    why.rule(
        f"{apart.edits} changes of steps and of their order out of {apart.largest}; steps of one word set"
        f" (F1 >= {SAME_STEP}) are the same: {steps_alike} of {sizes[0]}"
    )
    detail = {
        "raw": apart.edits,
        "num": apart.edits,
        "den": apart.largest,
        "method": "exact" if apart.exact else "upper_bound",
        "states": len(versions),
        "steps": sizes,
        "sources": [first.source, last.source],
        "confidence": "high" if first.source == last.source else "low",
    }
    return Measured(apart.edits / apart.largest, detail)


def _edges(plan: Plan) -> Edges:
    kept = range(min(len(plan.steps), MOST_STEPS))
    return set(pairwise(kept)) | {(a, b) for a, b in plan.after if a in kept and b in kept}


@signal("dynamics.intent_coherence_curve[]", "list[float]", "coherence per response", source="embedding", priority="P1")
def intent_coherence_curve(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """Similarity of each response's visible text and the first request, 0 to 1 on the embedder's scale; null without
    text.

    1 - the calibrated distance of the request and each answer, rounded to 4 digits; null before the request. Absent as
    dynamics.cp_curve[].

    Pitfalls: Short answers ("done") score low. The seed has a formula only, no path.
    Why: A sudden drop is drift, a low plateau an answer to the wrong question.
    """
    passages = view.derived(Passages)
    compared = request_vectors(view, vectors, passages)
    if isinstance(compared, Absent):
        return compared
    vectors, anchor, request = compared
    answers = vectors.of(passages.answer(n) for n in range(anchor.turn, len(view.turns)))
    distances = [None] * anchor.turn + [cosine_distance(request, answer) for answer in answers]
    curve = [None if d is None else round(1 - vectors.profile.pollution(d), DIGITS) for d in distances]
    why.support([anchor], "compared with every answer:")
    for n, value in enumerate(curve):
        if value is not None:
            why.denominator(passages.answer_events(n)[:1], f"turn {n}: coherence {value}, answer beginning")
    why.rule(f"1 - calibrated distance of request and answer, the scale of {vectors.embedder.id}")
    detail = {**vectors.provenance, "confidence": vectors.confidence, "anchor_turn": anchor.turn, "raw": distances}
    return Measured(curve, detail)


# Distances are 1 - cosine of an embedder's vectors, on the scale of that embedder's profile: 0 as near as an answer
# is to its own question, 1 as far as a stranger's session (design/signals.md#context-pollution).

CP_MODERATE = 0.2
"""The inventory's own cut; Kemple's bands are 0.10, 0.25 and 0.45."""
CP_SEVERE = 0.45
SHARP_RISE = 0.3
SHARP_UNTIL_TURN = 2
"""A rise that steep and that early is a new subject, not a drift (design/signals.md#failure-mode)."""
_BANDS = ((2, "started_wrong"), (4, "early"), (10, "mid_session"), (15, "late_mid"))
"""The phase in which drift set in: up to that turn; 3-4 and 11-15, which the seed leaves open, have their own names."""


@signal("dynamics.cp_curve[]", "list[float]", "CP per user turn", source="embedding", priority="P1")
def cp_curve(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """Distance of the last three exchanges from the first request, for each human turn, 0 to 1 on the embedder's scale;
    null if there is nothing to compare.

    Null before the request, 0 at it; then the calibrated distance of the request and the window, rounded to 4 digits.
    Window of turn n: the prompts (without fenced code and links, the first 4,000 characters each) and answers of turns
    n - 2 to n in their order, without the request, joined by line breaks, the last 8,000 characters. Absent for fewer
    than two turns, and without a request.

    Pitfalls: Measures topic distance, not failure: half of the real sessions start a second task. Do not compare two
    embedders.
    Why: Shows when and how fast the conversation leaves the first request.
    """
    passages = view.derived(Passages)
    compared = request_vectors(view, vectors, passages)
    if isinstance(compared, Absent):
        return compared
    vectors, anchor, request = compared
    windows = vectors.of_joined(passages.window(n, anchor) for n in range(anchor.turn + 1, len(view.turns)))
    distances = [None] * anchor.turn + [0.0] + [cosine_distance(request, window) for window in windows]
    profile = vectors.profile
    curve = [None if d is None else round(profile.pollution(d), DIGITS) for d in distances]
    why.support([anchor], "compared with every window:")
    for turn, value, how_far in [*zip(view.turns, curve, distances, strict=True)][anchor.turn + 1 :]:
        why.denominator([turn], f"turn {turn.turn}: CP {value}, distance {how_far}; the window ends with")
    why.rule(
        f"CP = (distance - {profile.aligned}) / ({profile.unrelated} - {profile.aligned}) cut to 0..1, the scale of"
        f" {vectors.embedder.id} ({profile.origin});"
        f" distance = 1 - cosine(request, turns N-{WINDOW_TURNS - 1}..N without it)"
    )
    detail = {**vectors.provenance, "confidence": vectors.confidence, "anchor_turn": anchor.turn, "raw": distances}
    # The shape: sharp, gradual or flat (design/signals.md#failure-mode).
    points = [(n, v) for n, v in enumerate(curve) if v is not None]
    rises = ((n, v - before) for (_, before), (n, v) in pairwise(points))
    if max(v for _, v in points) <= CP_MODERATE:
        shape = "flat"
    else:
        shape = "sharp" if any(n <= SHARP_UNTIL_TURN and rise >= SHARP_RISE for n, rise in rises) else "gradual"
    return Measured(curve, {**detail, "shape": shape})


@signal("dynamics.max_cp", "float", "CP", high_value=True, source="embedding", priority="P1")
def max_cp(view: SessionView, why: Evidence, cp_curve: list[float | None] | Absent) -> Measured | Absent:
    """The largest value of the session's context pollution curve.

    Absent where only the request has a value.

    Pitfalls: Up to 0.20 aligned, above moderate, above 0.45 severe: on the calibrated scale only. Kemple's own bands
    are 0.10, 0.25 and 0.45.
    Why: How far the talk got from what was asked for first.
    """
    if isinstance(cp_curve, Absent):
        return cp_curve
    distances = [(v, -n) for n, v in enumerate(cp_curve) if v is not None]
    if len(distances) < 2:  # the request itself is always 0
        return Absent("not_computable", "no_text")
    most, at = max(distances)
    why.support([view.turns[-at]], f"CP {most}, the first of the largest, in the window ending with")
    band = "aligned" if most <= CP_MODERATE else "moderate" if most <= CP_SEVERE else "severe"
    why.rule(f"the largest of the curve; > {CP_MODERATE} moderate, > {CP_SEVERE} severe")
    return Measured(most, {"turn": -at, "band": band})


@signal("dynamics.drift_onset_turn", "int", "turn index", source="embedding", priority="P1")
def drift_onset_turn(view: SessionView, why: Evidence, cp_curve: list[float | None] | Absent) -> Measured | Absent:
    """The first turn (0-based) whose context pollution is above 0.20.

    The first n with dynamics.cp_curve[][n] > 0.20; absent where none is.

    Pitfalls: A single aside triggers it; `sustained` asks for two turns in a row.
    Why: Early: a wrong start. Late: gradual drift.
    """
    if isinstance(cp_curve, Absent):
        return cp_curve
    away = [n for n, v in enumerate(cp_curve) if v is not None and v > CP_MODERATE]
    why.rule(f"first turn with CP > {CP_MODERATE}")
    if not away:
        return Absent("none_found", "never_above")
    onset = away[0]
    why.support([view.turns[onset]], f"CP {cp_curve[onset]} in the window ending with")
    sustained = next((n for n in away if n + 1 in away), None)
    band = next((name for last, name in _BANDS if onset <= last), "late")
    return Measured(onset, {"band": band, "sustained": sustained})


WITHIN_TURNS = 3
MOVED = 0.05
"""A smaller change of nearness is no movement (design/signals.md#locked-assumptions)."""
SAME_REGIONS = 0.5


@signal("dynamics.assumption_lock_turn", "int", "turn index", basis="heuristic", source="derived", priority="P2")
def assumption_lock_turn(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """The first turn (0-based) with a correction or failure report that is repeated within three turns, although the
    answers in between did not move towards it and nothing was accepted.

    Over successive turns n < m with a match of the correction or failure-report patterns (turn 0 left out), m - n <= 3
    and no acceptance pattern between: the first n whose answers (of turn n - 1 and of turn m - 1) differ in their
    calibrated distance to turn n, here not cut, by less than 0.05. Absent where most turns are in another language than
    English; turns in one are neither.

    Pitfalls: Rests on corrections found by pattern, a third of those a reader finds. The drop of 30 % the seed cites is
    from chat agents. `confidence` is low with an embedder that counts words. One value on the project's corpus.
    Why: Shows that the agent ignores a repeated correction.
    """
    if len(view.turns) < 3:
        return Absent("not_applicable", "few_turns")
    if (other := view.mostly_foreign(1)) is not None:
        return other
    corrected = [
        t.turn for t in view.turns[1:]
        if t.turn not in view.foreign
        and (corrections(t.text, t.kind) or failure_report(t.text, t.kind) is not None)
    ]  # fmt: skip
    why.denominator([view.turns[n] for n in corrected], "correction or failure report:")
    why.rule(f"a second complaint within {WITHIN_TURNS} turns, no acceptance between, nearness moved less than {MOVED}")
    for first, second in pairwise(corrected):
        between = view.turns[first + 1 : second]
        if second - first > WITHIN_TURNS or any(acceptance(t.text, t.kind) for t in between):
            continue
        moved, detail = _moved(view, vectors, first, second)
        if moved is not None and not moved:
            why.support([view.turns[first], view.turns[second]], f"turns {first} and {second}:")
            return Measured(first, {"second_turn": second, "confidence": "low", **detail})
    return Absent("none_found", f"{len(corrected)} corrections")


def _moved(
    view: SessionView, vectors: Vectors | Absent, first: int, second: int
) -> tuple[bool | None, dict[str, object]]:
    """Return whether the answers moved between two complaints, and by which method; None when it is unknown."""
    if isinstance(vectors, Absent):
        # Without vectors: whether the answers between edit other places than the one before.
        turns = [{edit.turn for edit in region.edits} for region in view.regions]
        edited = {n for n, of_region in enumerate(turns) if first - 1 in of_region}
        later = {n for n, of_region in enumerate(turns) if not of_region.isdisjoint(range(first, second))}
        moved = len(edited & later) / len(edited | later) < SAME_REGIONS if edited and later else None
        return moved, {"method": "region"}
    passages = view.derived(Passages)
    words, before, after = vectors.of(
        [passages.prompt(view.turns[first]), passages.answer(first - 1), passages.answer(second - 1)]
    )
    near_before, near_after = words.cosine(before), words.cosine(after)
    if near_before is None or near_after is None:
        return None, {}
    # Not cut to 0..1: beyond the ends of the scale, where short complaints lie, it would hide every movement.
    step = vectors.profile.unclipped(1 - near_before) - vectors.profile.unclipped(1 - near_after)
    return abs(step) >= MOVED, {**vectors.provenance, "moved": round(step, 4)}


# The failure mode is a decision tree over other signals (design/signals.md#failure-mode).

STALE_CALLS = 4
REPEATED = 0.20
"""Nearly twice the 98th percentile of repetition (design/signals.md#failure-mode); one to three stale calls are a
habit, four a loop."""
FEW_CALLS, FEW_FILE_CALLS = 10, 9
CORRECTED = 0.20
NEAR_TURNS = 3
GOALS, PLAN_STEPS = 3, 8
MANY_FILES, AT_ONCE = 4, 0.7
SOME_CORRECTED, SOME_PUSHBACK = 0.15, 0.25
FAR = 0.45
DRIFT, UNREQUESTED, NEW_FILES = 2.0, 3, 3
MOST_NULL = 2
_CORE = ("cp_curve", "correction_ratio", "repetition_rate", "scope_drift", "assumption_lock_turn")
_EXPECTED = frozenset(("none_found", "not_applicable"))
_SEARCHED = 4000
_FENCE = deferred_pattern(r"```.*?(?:```|\Z)", re.S)
_LISTED = deferred_pattern(r"\n[ \t]{0,6}(?:[-*\u2022]|\d{1,2}[.)])[ \t]+\S")
_CLAUSE = deferred_pattern(r"[.!?;\n]|,? (?:and|then)(?: then| also)? |, ")
_WORD = deferred_pattern(
    r"\W*(?:(?:please|can you|could you|also|then|now|finally|i want you to|we should|let's)\b\W*){0,3}(\w+)"
)


@signal("dynamics.session_failure_mode", "enum", "label", basis="heuristic", source="derived", priority="P1")
def session_failure_mode(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    user_turn_count: int,
    cp_curve: list[float | None] | Absent,
    correction_ratio: float | Absent,
    repetition_rate: float | Absent,
    repeated_calls: dict[str, Any],
    assumption_lock_turn: int | Absent,
    scope_drift: float | Absent,
    unrequested_files: dict[str, Any] | Absent,
    conflation_turn: int | Absent,
    pushback_rate: float | Absent,
    plan_steps_detected: int | Absent,
    objections: dict[str, list[int]] | Absent,
    vectors: Any,
) -> Measured | Absent:
    """stuck_loop, assumption_locked, multi_intent_confusion, shifted_intent or scope_bleed: the first whose condition
    holds; else clean.

    stuck_loop: stale_max >= 4, or (stale_max >= 2, repetition_rate >= 0.20, ten main-thread calls, nine with a target
    file, and the last third of these on no new file). assumption_locked: an assumption_lock_turn, or correction_ratio
    >= 0.20 with two corrections at most 3 turns apart. multi_intent_confusion: (correction_ratio >= 0.15 or
    pushback_rate >= 0.25), four files changed or more, 70 % of them in turn 0, and (8 plan steps or 3 goals in turn 0:
    list items, or clauses that begin with a verb of action, docs/patterns.md). shifted_intent: two turns in a row with
    CP >= 0.45 and correction_ratio < 0.20. scope_bleed: two turns or more, scope_drift > 2, 3 unrequested files, and a
    conflation_turn or a later turn with 3 files not changed before. An absent input makes its condition false. Absent
    where three of cp_curve, correction_ratio, repetition_rate, scope_drift and assumption_lock_turn are, but for
    none_found and not_applicable; and, instead of clean, where correction_ratio is.

    Pitfalls: shifted_intent is no failure of the agent: the person moved on. Look at `confidence`: scope is told by the
    files that are named, intent by counted words. Clean says that nothing matched, not that the work was good.
    Why: Names how a session went wrong, with the reasons.
    """
    if not view.steps and not any(view.responses):
        return Absent("not_applicable", "no_response")
    core = (cp_curve, correction_ratio, repetition_rate, scope_drift, assumption_lock_turn)
    missing = [n for n, v in zip(_CORE, core, strict=True) if isinstance(v, Absent) and v.reason not in _EXPECTED]
    if len(missing) > MOST_NULL:
        return Absent("dependency_null", ", ".join(missing))
    corrected = _number(correction_ratio)
    at = [] if isinstance(objections, Absent) else objections["corrections"]
    far = set() if isinstance(cp_curve, Absent) else {n for n, v in enumerate(cp_curve) if v is not None and v >= FAR}
    away = [n for n in sorted(far) if n - 1 in far or n + 1 in far]
    pushed = _number(pushback_rate)
    troubled = corrected >= SOME_CORRECTED or pushed >= SOME_PUSHBACK
    strayed = 0 if isinstance(unrequested_files, Absent) else unrequested_files["n"]
    drifted = user_turn_count > 1 and _number(scope_drift) > DRIFT and strayed >= UNREQUESTED
    locked = not isinstance(assumption_lock_turn, Absent)
    touched = {e.path for e in view.repo_edits}
    at_once = {e.path for e in view.repo_edits if e.turn == 0}
    first_edited: dict[str, int] = {}
    for edit in view.repo_edits:
        first_edited.setdefault(edit.path, edit.turn or 0)
    new_files = Counter(turn for turn in first_edited.values() if turn)
    # Stuck: equal calls follow each other without an edit, or calls repeat while the last third of those about files
    # reaches no new file. Some must repeat in vain: running the tests after each edit is normal work.
    stale = repeated_calls["stale_max"]
    circles = stale >= 2 and _number(repetition_rate) >= REPEATED and len(view.calls) >= FEW_CALLS
    if circles:
        files = [path for c in view.calls if (path := target_file(c)) is not None]
        last = len(files) - len(files) // 3
        circles = len(files) >= FEW_FILE_CALLS and set(files[last:]) <= set(files[:last])
    predicates = {
        "stuck_loop": stale >= STALE_CALLS or circles,
        "assumption_locked": locked or (corrected >= CORRECTED and any(b - a <= NEAR_TURNS for a, b in pairwise(at))),
        "multi_intent_confusion": troubled
        and len(touched) >= MANY_FILES
        and len(at_once) >= AT_ONCE * len(touched)
        and (_number(plan_steps_detected) >= PLAN_STEPS or (bool(view.turns) and goals(view.turns[0].text) >= GOALS)),
        "shifted_intent": bool(away) and not isinstance(correction_ratio, Absent) and corrected < CORRECTED,
        "scope_bleed": drifted
        and (not isinstance(conflation_turn, Absent) or any(n >= NEW_FILES for n in new_files.values())),
    }
    candidates = [name for name, holds in predicates.items() if holds]
    if not candidates and isinstance(correction_ratio, Absent) and correction_ratio.reason not in _EXPECTED:
        return correction_ratio  # clean says that nobody objected
    label = candidates[0] if candidates else "clean"
    why.rule(f"{label}: {', '.join(candidates) or 'no condition'} holds; the order is {', '.join(predicates)}")
    for turns, note in ((frozenset(at), "correction:"), (frozenset(away), f"CP {FAR} or more:")):
        why.support([t for t in view.turns if t.turn in turns], note)
    why.denominator(view.turns)
    detail: dict[str, Any] = {"predicates": {**predicates, "clean": not candidates}, "stale_max": stale}
    if missing:
        detail["missing"] = missing
    if len(candidates) > 1:
        detail["candidates"] = candidates
    weak = label == "stuck_loop" and stale < STALE_CALLS
    # Files named in words are a weak measure of scope, and counted words one of intent.
    by_words = label == "shifted_intent" and getattr(vectors, "confidence", "low") == "low"
    is_low = weak or label == "scope_bleed" or by_words
    detail["confidence"] = "low" if is_low else "medium" if len(candidates) > 1 else "high"
    return Measured(label, detail)


def _number(value: float | Absent) -> float:
    return 0.0 if isinstance(value, Absent) else value


def goals(text: str) -> int:
    """Count the things a prompt asks for: its list items, or its clauses that begin with a verb of action."""
    bare = "\n" + lowered(_FENCE.sub("\n", text[:_SEARCHED]))
    begins = [match[1] for clause in _CLAUSE.split(bare) if (match := _WORD.match(clause))]
    return max(len(_LISTED.findall(bare)), sum(word in ACTIONS for word in begins))
