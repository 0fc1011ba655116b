"""Understanding of the request: scope, drift, clarity of the prompt, and attribution of trouble."""

from __future__ import annotations

import math
import posixpath
import re
from functools import cache
from typing import Any

from agentsignals.changes.hunks import WHOLE_TREE
from agentsignals.model import UNSPOKEN, Absent, Edit, Turn
from agentsignals.model.lazy import deferred_pattern
from agentsignals.signals import Measured, label_of, labelled, ratio, signals_with
from agentsignals.views.passages import DIGITS, Passages, cosine_distance, request_vectors
from agentsignals.views.session import Evidence, SessionView, closing_question, target_file
from agentsignals.words.lexicon import (
    SEED_ASSUMPTIONS,
    Mentions,
    acceptance,
    assumptions,
    clean,
    corrections,
    failure_report,
    limits_work,
    names_of_file,
    other_language,
    rejection,
    words_said,
)
from agentsignals.words.text import count_tokens, lowered, word_lists
from agentsignals.words.vectors import Vectors

signal = signals_with(origin="Agent Signals")


@signal("anticipation.assumption_count", "int", "matches", source="regex", priority="P1")
def assumption_count(view: SessionView, why: Evidence) -> Measured | Absent:
    """Assumption phrases in the agent's first thinking block, or in its first message if it has none.

    Read are the response to turn 0: its first thinking event with text, else its first text event. Counted are matches
    of the pattern table `assumptions` in its prose. 0 where there is neither; absent where the agent writes another
    language.

    Pitfalls: Non-zero in about one session of a hundred: agents rarely announce what they assume.
    Why: Assuming is normal on a vague prompt, and a red flag on a detailed one.
    """
    first = view.responses[0] if view.turns else []
    block = next((e for e in first if e.kind == "thinking" and e.text), None)
    block = block or next((e for e in first if e.kind == "text" and e.text), None)
    if block is None:
        return Measured(0, {"empty": True})
    prose = view.thoughts if block.kind == "thinking" else view.prose
    if (other := other_language(prose)) is not None:
        return other
    spans = assumptions(prose, block)
    why.matches(prose.matches(spans))
    why.denominator([block])
    return Measured(
        len(spans),
        {"block": block.kind, "seed_literal": len(prose.spans_in(block, SEED_ASSUMPTIONS, words_said(prose)))},
    )


_LOOKING = frozenset(("read", "search", "plan", "ask"))


@signal("anticipation.clarification_sought", "bool", "flag", basis="heuristic", priority="P1")
def clarification_sought(view: SessionView, why: Evidence) -> Measured | Absent:
    """True if the first response asks before it acts: by tool, or by reading only and ending with a question.

    True where the first call of turn 0 has class ask, or where no call of turn 0 has another class than read, search,
    plan or ask and the response ends in a closing question. Absent without a response, and, where the first call does
    not ask, where the agent writes another language.

    Pitfalls: Combine with anticipation.prompt_underspecification. An offer at the end (“Want me to …?”) is none.
    Why: Asking first is right on a vague prompt, and poor reading of a clear one.
    """
    if not view.turns or not view.responses[0]:
        return Absent("not_applicable", "no_response")
    calls = [c for c in view.calls if c.turn == view.turns[0].turn]
    why.rule("its first call asks, or it only reads, searches and plans and its last message ends in a question")
    if calls and calls[0].class_ == "ask":
        why.support(calls[:1], "first call:")
        return Measured(True, {"how": "tool", "strict": False})
    if (other := other_language(view.prose)) is not None:
        return other
    closing = None if any(c.class_ not in _LOOKING for c in calls) else closing_question(view, view.responses[0])
    if closing is None:
        why.counter(calls)
        return Measured(False, {"strict": False})
    why.matches(view.prose.matches([closing]))
    return Measured(True, {"how": "question", "strict": not calls})


@signal("anticipation.first_tool_precision", "bool", "flag", version=2, context="both")
def first_tool_precision(view: SessionView, why: Evidence, touched_files: list[str]) -> Measured | Absent:
    """True if the first repository file the agent opened or searched was changed in the end.

    In order of the log, the first main-thread call with a target file in the repository, failed calls included,
    that is no folder of another path of the session. True if behavior.touched_files[] has that file. Absent where
    no file of the repository was changed, or no call has such a target.

    Pitfalls: A test file or a document read first and never edited is a miss, though the area may be right: `same_dir`
    is the softer question.
    Why: Separates understanding the task from guessing.
    """
    touched = [path for path in touched_files if view.in_repo(path)]
    if not touched:
        return Absent("not_applicable", "no_edit")
    paths = {*touched, *(c.path for c in view.calls if c.path is not None)}
    for call in view.calls:
        path = target_file(call)
        # Failed calls count too. Some tools list folders with the call that shows files.
        if path is not None and view.in_repo(path) and not any(other.startswith(path + "/") for other in paths):
            break
    else:
        return Absent("not_applicable", "no_substantive_call")
    why.support([call], "first substantive call")
    why.denominator(view.repo_edits, "edits")
    folder = posixpath.dirname(path)
    same_dir = any(posixpath.dirname(p) == folder for p in touched)
    return Measured(path in touched, {"file": path, "class": call.class_, "same_dir": same_dir})


SPREAD_FILES = 3
"""Fewest new files in new folders that count as a wider scope (design/signals.md#scope)."""
NEW_TASK_TOKENS = 3
"""A shorter turn ("go on") asks for nothing new."""
_NOT_BY_HAND = deferred_pattern(
    r"(?:^|/)(?:node_modules|dist|vendor|__generated__|__snapshots__|tmp|\.venv|__pycache__)/"
    r"|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|npm-shrinkwrap\.json|go\.sum|bun\.lockb|packages\.lock\.json)$"
    r"|\.lock$|\.min\.(?:js|css)$|\.(?:pb\.go|g\.dart|snap|log|tmp|bak|orig|map)$|_pb2(?:_grpc)?\.py$"
    r"|\.generated\.\w+$|_generated\.\w+$|(?:^|/)(?:scratch|tmp|temp)[^/]*$"
)
"""Lock files, generated files and scratch: nobody would ask for them."""
_DESIGNER = ".designer.cs"
"""Generated too, but only scope_drift leaves it out."""


@signal("anticipation.unrequested_files", "obj", "files", basis="heuristic", version=2, source="derived",
        priority="P2", origin="agentsignals")  # fmt: skip
def unrequested_files(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """Changed files that no human turn names: how many (n, of touched), and the first turn that changed one.

    Counted are files of the repository changed in the responses to turns that say where to work (see Named file).
    Generated, lock and scratch files (docs/patterns.md) are left out. Without such a turn, and where no counted file is
    named, the value is absent. Keys: n, touched, first_turn (null where n is 0).

    Pitfalls: A person who says what, not where, names no file: then nothing is known, not everything unrequested.
    Why: The counts and the first turn behind anticipation.scope_drift.
    """
    if not view.derived(_work):
        return Absent("not_applicable", "no_edit")
    edits = _scoped(view)
    named = view.mentions
    unknown = {path for path in {e.path for e in edits} if not named.place(path)}
    unrequested = [e for e in edits if e.path in unknown]
    why.support(unrequested, "no turn names it:")
    why.counter((e for e in edits if e.path not in unknown), "named:")
    touched = len({e.path for e in edits})
    if len(unknown) == touched:
        return Absent("not_computable", "no_reference")
    return {"n": len(unknown), "touched": touched, "first_turn": unrequested[0].turn if unrequested else None}


@signal(
    "anticipation.conflation_turn", "int", "turn index", basis="heuristic", version=3, source="derived", priority="P3"
)
def conflation_turn(view: SessionView, why: Evidence) -> Measured | Absent:
    """The first response that exceeds the request, by a judge's label; without one by the files it changes.

    By files: the first turn n > 0 after a first change whose response changes three or more files not changed before,
    in folders without an earlier change, that no turn up to n names (as in anticipation.unrequested_files), where turn
    n limits the work, or names a file or folder and is an objection, an acceptance or shorter than three tokens. Absent
    where most turns after the first are in another language than English.

    Pitfalls: Without a judge's label (method files) told by folders alone, confidence low. No value on the project's
    corpus.
    Why: Early: the scope was misread. Late: the scope grew.
    """
    judged = next((j for j in view.judgements("conflation_turn") if j.turn is None), None)
    if judged is not None:
        why.rule(f"{judged.labeller}: {judged.value}" + (f" ({judged.reason})" if judged.reason else ""))
        if judged.number is None:
            return Absent("none_found", f"method judge, by {judged.labeller}")
        return Measured(int(judged.number), {"method": "judge", "labeller": judged.labeller, "reason": judged.reason})
    if len(view.turns) < 2:
        return Absent("not_applicable", "one_turn" if view.turns else "no_turn")
    if (other := view.mostly_foreign(1)) is not None:
        return other
    why.rule(f"{SPREAD_FILES} new files in new folders, named by no turn so far, after a turn that limits the work")
    folders: set[str] = set()
    files: set[str] = set()
    by_turn: dict[int, list[Edit]] = {}
    for edit in view.derived(_work):
        by_turn.setdefault(edit.turn or 0, []).append(edit)
    for n, edits in sorted(by_turn.items()):
        new = {e.path for e in edits} - files
        spread = [path for path in new if posixpath.dirname(path) not in folders]
        turn = view.turns[n]
        is_limited = n not in view.foreign and (
            limits_work(turn.text) or (n in view.scoped_turns and not _is_new_request(turn))
        )
        if files and len(spread) >= SPREAD_FILES and is_limited:
            named = Mentions([t.text for t in view.turns[: n + 1]])
            unasked = {path for path in spread if not named.place(path)}
            if len(unasked) >= SPREAD_FILES:
                why.support([turn])
                why.support([e for e in edits if e.path in unasked], "new folder:")
                return Measured(n, {"method": "files", "files": len(unasked), "confidence": "low"})
        files |= new
        folders |= {posixpath.dirname(path) for path in new}
    return Absent("none_found", "method files")


def _work(view: SessionView) -> list[Edit]:
    left_out = {path for path in {e.path for e in view.repo_edits} if path == WHOLE_TREE or _NOT_BY_HAND.search(path)}
    return [e for e in view.repo_edits if e.path not in left_out] if left_out else view.repo_edits


def _scoped(view: SessionView) -> list[Edit]:
    return [e for e in view.derived(_work) if e.turn in view.scoped_turns]


def _is_new_request(turn: Turn) -> bool:
    """Return whether a turn is a new request: long enough, and neither an objection nor permission to go on."""
    if turn.kind in ("rejection_feedback", "attachment"):
        return False
    return (turn.kind != "prompt" or turn.n_tokens >= NEW_TASK_TOKENS) and not any(
        reaction(turn.text, turn.kind) for reaction in (corrections, failure_report, rejection, acceptance)
    )


_FILE = deferred_pattern(r"[\w-][\w.-]*\.[a-z][a-z0-9]{0,7}")


@signal("anticipation.scope_drift", "float", "ratio", version=3, basis="heuristic", priority="P1", context="both",
        harness=True, hindsight="the gold patch")  # fmt: skip
def scope_drift(view: SessionView, why: Evidence, touched_files: list[str] | Absent) -> Measured | Absent:
    """Files changed / those of them that a human turn names, counted as in anticipation.unrequested_files. In an eval
    files changed / files of the gold patch (1.0 is the smallest footprint).

    A counted file is named where a word of a turn is its path, its name, or the part of its name before the first dot,
    if that has four letters or more and a digit, `-`, `_` or inner capital. `.designer.cs` files are left out, too. 0
    where nothing was changed; absent where no counted file is named.

    Pitfalls: Method gold_patch compares with one fix of several; `hit` counts its files that were changed. Method
    mention counts as asked for only what a turn names, so it says too much: call it drift above 2 only with 3 or more
    unrequested files. Half of the sessions name no file.
    Why: Work that grows past the request looks like thoroughness.
    """
    attempt = view.session.attempt
    if attempt is not None:
        files, method = touched_files, "edit_log"
        if not attempt.gold_patch:
            return Absent("missing_artifact", "gold_patch")
        counted = attempt.summary.touched_files if attempt.summary is not None else None
        if attempt.patch is not None:
            files, method = [file.path for file in attempt.patch], "patch"
        elif counted is not None:
            files, method = [path for path, _ in counted], "harness"
        if isinstance(files, Absent):
            return files
        changed = {p for p in files if view.in_repo(p) and not (_NOT_BY_HAND.search(p) or p.endswith(_DESIGNER))}
        gold = {file.path for file in attempt.gold_patch}
        why.support([*attempt.saying("patch"), *attempt.saying("summary"), *attempt.saying("gold_patch")])
        why.counter((e for e in view.repo_edits if e.path not in gold), "not in the gold patch:")
        return ratio(len(changed), len(gold), hit=len(gold & changed), method="gold_patch", files_by=method)
    why.denominator(view.turns)
    if not any(not e.path.endswith(_DESIGNER) for e in view.derived(_work)):
        return Measured(0.0, {"num": 0, "den": 0, "method": "mention"})
    touched = {e.path for e in _scoped(view) if not e.path.endswith(_DESIGNER)}
    words = view.mentions.by_name
    named = {path for path in touched if not words.isdisjoint(names_of_file(path))}
    if not named:
        speaks_of_files = any(_FILE.fullmatch(word) for word in words if "." in word)
        return Absent("not_computable", "zero_denominator" if speaks_of_files else "no_reference")
    why.support((e for e in _scoped(view) if e.path in named), "named by a turn:")
    why.counter((e for e in _scoped(view) if e.path in touched - named), "named by none:")
    return ratio(len(touched), len(named), unrequested=len(touched) - len(named), method="mention")


LONG_TOKENS, TOKENS_SPAN = 40, 35
"""A prompt of 40 tokens is no longer vague for its length, one of 5 as vague as can be
(design/signals.md#underspecification)."""
_WEIGHTS = (0.40, 0.30, 0.30)
_SEARCHED = 4000
"""Characters of a prompt that are looked through; who writes more says what it is about in them."""

_REFERENCES = [(each["sign"], each["pattern"].replace("\n", "")) for each in word_lists("requests")["concrete"]]
_compiled = cache(re.compile)
"""Compiled when first needed, and kept: `re` looks its own up more slowly."""
_NAMES = frozenset(word_lists("requests")["no_references"].split())
_OUTCOME = deferred_pattern(
    r"\b(?:should(?:n't)?|must|expect(?:s|ed)?|so that|instead of|returns?|outputs?|shows?|prints?|fails? with|until"
    r"|such that|acceptance|wants? (?:it|the|this|to|that)|needs? to|ensure|make sure|without|errors?|results?)\b"
    r"|\bwhen\b[^.\n]{1,80}\bthen\b"
)
"""Words that state when the work is done."""


@signal("anticipation.prompt_underspecification", "float", "score", basis="heuristic", source="derived", priority="P1")
def prompt_underspecification(
    view: SessionView, why: Evidence, first_message_pattern: str | Absent
) -> Measured | Absent:
    """Vagueness of the first prompt, 0..1: 0.4 for shortness, 0.3 for naming nothing concrete, 0.3 for no outcome.

    0.4 * L + 0.3 * R + 0.3 * O over the first 4,000 characters of turn 0. L: (40 - tokens of the cleaned text) / 35,
    cut to 0..1. R: 0 where the raw text matches a reference of docs/patterns.md that is no product's name, else 1. O: 0
    where the cleaned text matches the outcome pattern there, else 1, and 0.5 where it ends in a question mark. Absent
    for commands, greetings, attachments, unspoken turns and other languages than English.

    Pitfalls: 1 is vague; its source's word on a low score means `prompt_quality`. “Review the branch” scores high and
    is clear in its place: no verdict by itself.
    Why: Failures after a vague prompt say little about the agent.
    """
    if not view.turns:
        return Absent("not_applicable", "no_turns")
    first = view.turns[0]
    if first.kind == "slash_command" or first.kind in UNSPOKEN:
        return Absent("not_applicable", first.kind)
    if isinstance(first_message_pattern, Absent):
        return first_message_pattern
    if first_message_pattern in ("greeting", "attachment_only"):
        return Absent("not_applicable", first_message_pattern)
    if (other := view.foreign.get(first.turn)) is not None:
        return other
    text = clean(first.text)[:_SEARCHED]
    n_tokens = count_tokens(text)
    short = min(max((LONG_TOKENS - n_tokens) / TOKENS_SPAN, 0.0), 1.0)
    reference = _reference(first.text[:_SEARCHED])
    outcome = _OUTCOME.search(lowered(text))
    is_question = text.rstrip().endswith("?")
    no_outcome = 0.0 if outcome else 0.5 if is_question else 1.0
    parts = (short, 0.0 if reference else 1.0, no_outcome)
    score = math.fsum(weight * part for weight, part in zip(_WEIGHTS, parts, strict=True))
    why.support([first], f"{n_tokens} tokens:")
    if reference:
        why.match(first, "reference", reference)
    if outcome:
        why.match(first, "outcome", text[outcome.start() : outcome.end()])
    why.rule("0.40 shortness (40 tokens: 0, 5: 1) + 0.30 no reference + 0.30 no outcome (half for a question)")
    detail = {"L": short, "R": parts[1], "O": no_outcome, "is_question": is_question, "prompt_quality": 1 - score}
    return Measured(score, detail)


def _reference(text: str) -> str | None:
    """Return the first words found that name something concrete."""
    for sign, pattern in _REFERENCES:
        if sign in text:
            for match in _compiled(pattern).finditer(text):
                if match[0] not in _NAMES:
                    return match[0]
    return None


@signal("anticipation.goal_alignment_at_close", "float", "similarity", version=3, source="llm_judge", priority="P3",
        status="needs a judge")  # fmt: skip
def goal_alignment_at_close(view: SessionView, why: Evidence) -> Measured | Absent:
    """How well the result matches the request, 0 to 1: `number` of the judge's label of task goal_alignment_at_close.

    Pitfalls: A session that moved on to another task is measured by its first. How near the words are is
    anticipation.close_request_overlap, which is no judgement.
    Why: Good work on the wrong thing scores low.
    """
    measured = label_of(view, why, "goal_alignment_at_close", "number")
    if isinstance(measured, Measured):
        measured.detail = {"method": "judge", **measured.detail}
    return measured


@signal("anticipation.close_request_overlap", "float", "similarity", source="embedding", priority="P3",
        origin="agentsignals")  # fmt: skip
def close_request_overlap(view: SessionView, why: Evidence, vectors: Vectors | Absent) -> Measured | Absent:
    """Similarity of the agent's last message and the first request, 0 to 1, on the embedder's scale.

    1 - the calibrated distance between the request and the answer of the last response that has one, rounded to 4
    digits; absent without either.

    Pitfalls: An overlap of words, no verdict: a close in other words ("done, all green") scores low though the goal is
    met.
    Why: A low value suggests checking how the session ended.
    """
    passages = view.derived(Passages)
    compared = request_vectors(view, vectors, passages, min_turns=1)
    if isinstance(compared, Absent):
        return compared
    vectors, anchor, request = compared
    last = next((n for n in range(len(view.turns) - 1, anchor.turn - 1, -1) if passages.answer(n)), None)
    if last is None:
        return Absent("not_applicable", "no_answer")
    distance = cosine_distance(request, vectors.of([passages.answer(last)])[0])
    if distance is None:
        return Absent("not_computable", "no_words")
    why.support([anchor], "the request:")
    why.support(passages.answer_events(last)[:1], "the last answer, beginning:")
    why.rule(f"1 - calibrated distance {distance} of the two, the scale of {vectors.embedder.id}")
    turns = {"anchor_turn": anchor.turn, "answer_turn": last}
    detail = {**vectors.provenance, "confidence": "low", **turns, "raw": distance}
    return Measured(round(1 - vectors.profile.pollution(distance), DIGITS), detail)


labelled(
    "anticipation.task_paraphrase_accuracy",
    "float",
    "similarity",
    """How completely and faithfully the agent's first restatement matches the request: a judge's 0 to 4, over 4.

    Pitfalls: Agents often act without restating; then there is nothing to judge.
    Why: The first restatement is the earliest sign of a misread task.
    """,
    field="number",
    origin="Agent Signals",
)
labelled(
    "anticipation.instruction_adherence",
    "enum",
    "label",
    """How well explicit instructions were followed: full, partial, ignored or contradicted.

    Pitfalls: Not the same as being right.
    Why: Shows whether the agent did what was asked, as asked.
    """,
    origin="Agent Signals",
)


@signal("anticipation.plan_optimality", "enum", "label", source="llm_judge", priority="P3", status="needs a judge")
def plan_optimality(view: SessionView, why: Evidence, plan_steps_detected: int) -> Measured | Absent:
    """How the first explicit plan compares with the path that worked: optimal, suboptimal or wrong_direction.

    The judge's label of task plan_optimality; not applicable where reasoning.plan_steps_detected is 0.

    Pitfalls: Judges are poor at this: calibrate against people's scores before using it.
    Why: Shows whether the first plan was the one that worked.
    """
    if plan_steps_detected == 0:
        return Absent("not_applicable", "no_plan")
    return label_of(view, why, "plan_optimality")


VAGUE = 0.75
DRIFT = 2.0
UNREQUESTED = 3
TROUBLED_OUTCOMES = frozenset(("explicitly_rejected", "restarted_same_task"))
_UNWATCHED = ("task_paraphrase_accuracy", "plan_optimality")
"""Inputs of section 6 that take a judge: their conditions are false, and said to be missing."""


@signal(
    "anticipation.session_attribution", "enum", "label", basis="heuristic", version=2, source="derived", priority="P2"
)
def session_attribution(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    session_outcome: str | Absent,
    objections: dict[str, list[int]] | Absent,
    user_turn_count: int,
    prompt_underspecification: float | Absent,
    clarification_sought: bool | Absent,
    assumption_count: int | Absent,
    first_tool_precision: bool | Absent,
    scope_drift: float | Absent,
    unrequested_files: dict[str, Any] | Absent,
    conflation_turn: int | Absent,
    drift_onset_turn: int | Absent,
) -> Measured | Absent:
    """underspecified_prompt, agent_misunderstood, scope_conflation or correct_anticipation: the first rule that holds;
    absent when none does.

    Conditions: trouble = a correction, two pushbacks (dynamics.objections), or outcome explicitly_rejected or
    restarted_same_task. early = first correction in turn 1 or 2. vague = prompt_underspecification >= 0.75. widened =
    scope_drift > 2 with 3 or more unrequested files, or a conflation_turn. misunderstood = trouble, not vague, and
    (early, or first_tool_precision false and drift_onset_turn 1 or 2). Vague and misunderstood need two human turns.
    (1) trouble, vague, and (clarification_sought, an assumption, or early): underspecified_prompt. (2) misunderstood
    and trouble with widened: agent_misunderstood if the first correction or drift_onset_turn, whichever is earlier, is
    no later than the conflation_turn (else the first turn with unrequested files), otherwise scope_conflation. (3)
    misunderstood: agent_misunderstood. (4) trouble and widened: scope_conflation. (5) no trouble, outcome accepted,
    first_tool_precision not false: correct_anticipation, also of one turn. A missing input makes its condition false.

    Pitfalls: Never use underspecified_prompt as a bad mark for the agent. Two of its inputs need a judge and count as
    false; most sessions are inconclusive, and absent says so.
    Why: A frustrated person is not yet a failed agent: the prompt may have been the trouble.
    """
    if isinstance(session_outcome, Absent) and isinstance(objections, Absent):
        return Absent("dependency_null", "user.session_outcome, dynamics.objections")
    values = {
        "outcome": session_outcome,
        "objections": objections,
        "vagueness": prompt_underspecification,
        "asked": clarification_sought,
        "assumptions": assumption_count,
        "first_tool_precision": first_tool_precision,
        "scope_drift": scope_drift,
        "unrequested_files": unrequested_files,
        "conflation_turn": conflation_turn,
        "drift_onset_turn": drift_onset_turn,
    }
    # The conditions of the verdict (design/signals.md#whose-fault). A missing input makes its condition false.
    known: dict[str, Any] = {name: None if isinstance(v, Absent) else v for name, v in values.items()}
    objected = known["objections"] or {"corrections": [], "pushback": []}
    corrected: list[int] = objected["corrections"]
    first, drift, conflation = (
        (corrected[0] if corrected else None),
        known["drift_onset_turn"],
        known["conflation_turn"],
    )
    files = known["unrequested_files"] or {"n": 0, "first_turn": None}
    vague = known["vagueness"]
    trouble = bool(corrected) or len(objected["pushback"]) >= 2 or known["outcome"] in TROUBLED_OUTCOMES
    missed = known["first_tool_precision"] is False
    early = first is not None and first <= 2
    told_vague = bool(known["asked"]) or (known["assumptions"] or 0) >= 1 or early
    widened = (known["scope_drift"] or 0) > DRIFT and files["n"] >= UNREQUESTED
    # One turn leaves nobody room to object: its trouble is of the outcome alone and blames no one.
    several = trouble and user_turn_count > 1
    holds = {
        "trouble": trouble,
        "vague_prompt": several and vague is not None and vague >= VAGUE and told_vague,
        "misunderstood": several and vague is not None and vague < VAGUE and (early or (missed and drift in (1, 2))),
        # Files that nobody named are no verdict: somebody must have minded.
        "scope_widened": trouble and (widened or conflation is not None),
        "anticipated": not trouble and known["outcome"] == "accepted" and not missed,
    }
    label, rule, reason = None, 6, "no rule holds"
    if holds["vague_prompt"]:
        label, rule = "underspecified_prompt", 1
        reason = "trouble after a vague prompt, and a question, a guess or an early correction"
    elif holds["misunderstood"] and holds["scope_widened"]:
        scope = conflation if conflation is not None else files["first_turn"]
        onset = min((n for n in (first, drift) if n is not None), default=0)
        label, rule = ("agent_misunderstood" if scope is None or onset <= scope else "scope_conflation"), 2
        reason = f"both misread (turn {onset}) and widened (turn {scope}): the earlier counts"
    elif holds["misunderstood"]:
        label, rule = "agent_misunderstood", 3
        reason = "a clear prompt, and an early correction or a wrong first file and early drift"
    elif holds["scope_widened"]:
        label, rule = "scope_conflation", 4
        reason = "trouble, and more than twice the files that were named, or work in new places unasked"
    elif holds["anticipated"]:
        label, rule, reason = "correct_anticipation", 5, "no trouble, accepted, and the first file was not a wrong one"
    why.support([t for t in view.turns if t.turn in corrected], "correction:")
    why.support([t for t in view.turns if t.turn == conflation], "scope widened:")
    why.rule(f"rule {rule}: {reason}")
    if label is None:
        true = ", ".join(name for name, is_true in holds.items() if is_true)
        return Absent("not_computable", f"inconclusive: {true or 'nothing'} holds")
    missing = [name for name, v in values.items() if isinstance(v, Absent) and v.reason != "none_found"]
    return Measured(label, {"rule": rule, "predicates": holds, "missing": [*missing, *_UNWATCHED]})
