"""The behavioural metrics of agent-traces: of a session, and of all sessions together.

Values of a data set follow from the sessions' (`num`/`den`: sum over sum); only what has no value of its own in a
session is a signal of the corpus.
"""

from __future__ import annotations

import hashlib
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agentsignals.model import UNSPOKEN, Absent, EventKind, ToolCall, TurnKind
from agentsignals.model.lazy import deferred_pattern
from agentsignals.model.prices import PAID, PROMPT
from agentsignals.signals import Measured, Row, ratio, signals_with
from agentsignals.stats.agent_traces import (
    FEWEST_SESSIONS,
    FEWEST_SETS,
    NEGATIVE,
    PLATEAU,
    Figures,
    by_metric,
    commonest_pattern,
    pooled,
    spread,
)
from agentsignals.stats.intervals import median
from agentsignals.views.history import place_of
from agentsignals.views.session import FAILURES_UNKNOWN, Evidence, SessionView
from agentsignals.views.usage import usd_of
from agentsignals.words.lexicon import ACTIONS, clean, head
from agentsignals.words.text import estimate_tokens, lowered, word_lists

signal = signals_with(origin="agent-traces")

SHORT_CHARS = 20
_CANONICAL: frozenset[EventKind] = frozenset(
    ("human_turn", "interrupt", "thinking", "text", "tool_call", "tool_result", "compaction", "model_change")
)


@signal("corpus.autonomy_ratio", "float", "tool calls per user message")
def autonomy_ratio(view: SessionView, why: Evidence, tool_call_count: int, user_turn_count: int) -> Measured | Absent:
    """Main-thread tool calls per human turn: behavior.tool_call_count / user.user_turn_count.

    Pitfalls: What counts as a call differs by client. A data set has two values: the median of its sessions, and all
    calls over all messages.
    Why: Most of a session is not the person: collections differ from 11 to 40 calls a message.
    """
    why.support(view.calls)
    why.denominator(view.turns)
    if not user_turn_count:
        return Absent("not_computable", "zero_denominator")
    with_subagents = len(view.session.tool_calls) / user_turn_count
    return ratio(tool_call_count, user_turn_count, with_subagents=with_subagents)


@signal("corpus.error_rate", "float", "ratio")
def error_rate(view: SessionView, why: Evidence, tool_error_rate: float) -> Measured:
    """Failed tool calls / answered tool calls: the value of user.tool_error_rate.

    Pitfalls: Error flags mean different things in different clients. The person's refusals count on neither side. The
    same figure as user.tool_error_rate.
    """
    why.support(view.errors)
    why.denominator(view.answered)
    return Measured(tool_error_rate, {"num": len(view.errors), "den": view.n_answered})


@signal("corpus.tool_mix_entropy", "float", "bits", context="both")
def tool_mix_entropy(view: SessionView, why: Evidence) -> Measured | Absent:
    """Shannon entropy of the tool names of main-thread calls, -sum(p * log2 p) over the share p of each `name`; `norm`
    is the share of the most it could be, `class_entropy` that of the fine classes.

    Pitfalls: MCP tools have many names, which inflates it: compare `class_entropy` across agents.
    """
    if not view.calls:
        return Absent("not_applicable", "no_calls")
    why.support(view.calls)
    names = Counter([c.name for c in view.calls])
    bits = _entropy(names.values())
    norm = bits / math.log2(len(names)) if len(names) > 1 else 0.0
    return Measured(bits, {"norm": norm, "class_entropy": _entropy(view.class_counts.values())})


@signal("corpus.tool_class_mix", "obj", "shares", context="both", priority="P1")
def tool_class_mix(view: SessionView, why: Evidence) -> Measured | Absent:
    """Share of each fine class among the main-thread tool calls; absent without any.

    Pitfalls: Shares hide how few calls there may be: `n`.
    Why: Agents group by working style: read-heavy, shell-heavy, edit-first.
    """
    if not view.calls:
        return Absent("not_applicable", "no_calls")
    why.support(view.calls)
    n = len(view.calls)
    return Measured({class_: k / n for class_, k in sorted(view.class_counts.items())}, {"n": n})


@signal("corpus.session_length_events", "int", "events", context="both", origin="this project")
def session_length_events(view: SessionView, why: Evidence) -> Measured:
    """Main-thread events that say something: of kind human_turn, interrupt, thinking, text, tool_call, tool_result,
    compaction and model_change.

    Pitfalls: Events, not lines of the file: of those a third may be progress ticks and half repeats.
    """
    why.support(e for e in view.events if e.kind in _CANONICAL)
    others = len(view.session.events) - len(view.events)
    silent = sum([len(events) for kind, events in view.by_kind.items() if kind not in _CANONICAL])
    return Measured(len(view.events) - silent, {"subagent_events": others})


@signal("corpus.median_session_length_events", "float", "events", context="both", level="corpus")
def median_session_length_events(session_length_events: Sequence[int]) -> Measured | Absent:
    """Median of corpus.session_length_events over all sessions.

    Pitfalls: Raw line counts are another thing: see corpus.session_length_events.
    """
    middle = median(session_length_events)
    if middle is None:
        return Absent("not_applicable", "no_sessions")
    return Measured(float(middle), {"n": len(session_length_events)})


@signal(
    "corpus.session_cost_usd", "float", "USD", version=3, grows_with_output=True, context="both", origin="this project"
)
def session_cost_usd(view: SessionView, why: Evidence, cost_usd: float) -> Measured:
    """Cost of all model calls of a session, its subagents' included: the value of tokens.cost_usd.

    Pitfalls: As tokens.cost_usd, and the same figure.
    """
    priced = [s for s in view.session.steps if s.cost_usd is not None]
    why.support(priced)
    why.bill(priced, PAID)
    return Measured(cost_usd, {"subagent": usd_of(view.subagent_steps)})


@signal("corpus.cost_per_session", "float", "USD per session", version=3, grows_with_output=True, context="both",
        level="corpus")  # fmt: skip
def cost_per_session(session_cost_usd: Sequence[float], session_length_events: Sequence[int]) -> Measured | Absent:
    """Mean of corpus.session_cost_usd over the sessions whose cost is known, subagents included.

    Pitfalls: Sessions without a price are left out (`n_null`); where output is logged too low, so is this.
    """
    if not session_cost_usd:
        return Absent("not_computable", "no_costs")
    detail = {
        "median": median(session_cost_usd),
        "n": len(session_cost_usd),
        "n_null": max(len(session_length_events) - len(session_cost_usd), 0),
    }
    # The module `statistics` takes longer to load than all signals take to be declared.
    return Measured(math.fsum(session_cost_usd) / len(session_cost_usd), detail)


@signal("corpus.output_input_token_ratio", "float", "ratio", grows_with_output=True, context="both")
def output_input_token_ratio(view: SessionView, why: Evidence) -> Measured | Absent:
    """Output tokens / (uncached input + cache reads + cache writes) of the main thread's model calls.

    Sums over `steps` of the main thread; a missing count is 0. Absent where no step has output tokens, or none has
    input tokens.

    Pitfalls: `literal` leaves cached input out, as the providers' field does, and spans four orders of magnitude.
    """
    output, uncached, everything = view.usage.output_tokens, view.usage.input_tokens, view.usage.all_input
    if output is None or uncached is None:
        return Absent("missing_field", "usage")
    why.support(view.billed_steps)
    why.bill(view.billed_steps, PROMPT | {"output"})
    detail: dict[str, Any] = {"literal": output / uncached if uncached else None}
    if view.undercounted and everything:
        detail["estimated"] = estimate_tokens(view.written_chars) / everything
    return ratio(output, everything, **detail)


def _pooled_messages(sessions: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    return [{key: sum([session[key] for session in sessions]) for key in ("le_20", "lt_20", "n")}]


@signal("corpus.short_messages", "obj", "messages", pool=_pooled_messages, origin="this project")
def short_messages(view: SessionView, why: Evidence) -> dict[str, int] | Absent:
    """Human messages of at most 20 characters, of under 20, and of any length; plan hand-offs and bare attachments
    excluded.

    Characters of the turn's text without outer blanks, over turns with any, not of kind plan_handoff, attachment or
    scripted_prompt. Keys: le_20, lt_20, n. Absent without such a turn.

    Pitfalls: Depends on what counts as a human message: interrupts or /exit would inflate it.
    """
    messages = [(n, t) for t in view.turns if t.kind not in UNSPOKEN and (n := len(t.text.strip()))]
    if not messages:
        return Absent("not_applicable", "no_messages")
    short = [t for n, t in messages if n <= SHORT_CHARS]
    why.support(short, "short")
    why.denominator(t for _, t in messages)
    return {"le_20": len(short), "lt_20": len([1 for n, _ in messages if n < SHORT_CHARS]), "n": len(messages)}


@signal("corpus.share_messages_le_20_chars", "float", "ratio", level="corpus")
def share_messages_le_20_chars(short_messages: Sequence[dict[str, int]]) -> Measured | Absent:
    """Human messages of at most 20 characters / all, by the sums of corpus.short_messages over all sessions.

    Pitfalls: The seed says both at most 20 and under 20: `lt_20` is the other.
    """
    (total,) = _pooled_messages(short_messages)
    lt_20 = total["lt_20"] / total["n"] if total["n"] else None
    return ratio(total["le_20"], total["n"], lt_20=lt_20)


def _entropy(counts: Collection[int]) -> float:
    """Shannon entropy in bits."""
    total = sum(counts)
    return -math.fsum([n / total * math.log2(n / total) for n in counts]) + 0.0


RECOVERY_CALLS = 5
COMMANDS_LOOKED_AT = 1_000
"""Number of last commands without a file argument that are kept: each may name any file, so every edited file is looked
for in all of them. Output older than that has left the agent's context."""


@signal("corpus.read_before_edit_rate", "float", "ratio", context="both")
def read_before_edit_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Edit attempts on existing files the agent had read or changed before / all edit attempts on existing files.

    Over main-thread calls of class edit that were not rejected or cancelled, in order. A file is known once a call of
    class read had it as `path`, once any call changed it, or where its path is a part of the text of one of the last
    1,000 commands of class read without a `path`. Files that the call creates do not count. A call is informed if all
    its existing files are known. A call that changed nothing is about its `path`, unless that is unknown and the call
    failed with not_found or has purpose write_file without error_class not_read_first. Searches and attachments make no
    file known.

    Pitfalls: Claude Code enforces it, so it says something only of agents without that guard. A file shown by a search
    or attached by the person does not count as read. Of eval runs one value on the project's corpus.
    """
    changed_files = view.changed_files
    if not changed_files and not view.edit_calls:
        return Absent("not_applicable", "no_edit")
    informed: list[ToolCall] = []
    blind: list[ToolCall] = []
    n_lost = 0  # attempts whose file was last seen before a compaction of the context
    seen: dict[str, int] = {}
    readers_of_many: deque[str] = deque(maxlen=COMMANDS_LOOKED_AT)
    compactions = [e.seq for e in view.by_kind.get("compaction", ())]
    created = {(e.seq, e.path) for e in view.repo_edits if e.op == "create"}
    for call in view.calls:
        class_ = call.class_
        if class_ == "read":
            if call.path is not None:
                seen[call.path] = call.seq
            elif call.command:
                readers_of_many.append(call.command)
            continue
        changed = changed_files.get(call.seq, ())
        if class_ == "edit" and call.status not in ("rejected", "cancelled"):
            existing = [p for p in changed if p in seen or (call.seq, p) not in created]
            if not changed and call.path and view.in_repo(call.path):
                # The call changed nothing. Would it have made a new file, by its tool and its error?
                creates = call.error_class == "not_found" or call.purpose == "write_file"
                if call.path in seen or call.error_class == "not_read_first" or not creates:
                    existing = [call.path]
            if any(p not in seen and not any(p in command for command in readers_of_many) for p in existing):
                blind.append(call)
            elif existing:
                informed.append(call)
                if compactions:
                    last = max(seen.get(path, 0) for path in existing)
                    n_lost += bisect_right(compactions, last) < bisect_left(compactions, call.seq)
        for path in changed:
            seen[path] = call.seq
    attempts = len(informed) + len(blind)
    if not attempts:
        return Absent("not_applicable", "no_edit")
    why.support(informed, "known file")
    why.counter(blind, "unknown file")
    blocked = sum(c.error_class == "not_read_first" for c in (*informed, *blind))
    return ratio(len(informed), attempts, blocked=blocked, lost_by_compaction=n_lost)


@signal("corpus.error_recovery_rate", "float", "ratio", version=2, context="both", priority="P1", origin="this project")
def error_recovery_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Failed calls soon made good, by the same tool on the same target within five calls and the same turn / all.

    Denominator: main-thread calls with status error, without error_class sibling_cancelled. Numerator: those after
    which, within the next five main-thread calls and the same turn, a call of the same tool name on the same target has
    status ok. The target is `path`; of a command its first word after `cd DIR`, assignments, sudo, time, `&&` and `;`.

    Pitfalls: Seed 000 names error recovery as the better lens without a formula: this one is ours.
    Why: How an agent handles failure says more than how pleased the person sounds.
    """
    if not view.records_failures:
        return FAILURES_UNKNOWN
    if all(c.error_class == "sibling_cancelled" for c in view.errors):
        return Absent("not_applicable", "no_errors")
    failed = [(i, c) for i, c in enumerate(view.calls) if c.status == "error" and c.error_class != "sibling_cancelled"]
    recovered = []
    episodes = 0
    for i, call in failed:
        target = _target(call)
        for c in view.calls[i + 1 : i + 1 + RECOVERY_CALLS]:
            # The tool's name first: the first word of a command takes a while to find.
            if c.status == "ok" and c.turn == call.turn and c.name == call.name and _target(c) == target:
                recovered.append(call)
                break
        before = view.calls[i - 1] if i else None
        episodes += before is None or before.status != "error" or _target(before) != target
    why.support(recovered)
    why.denominator(c for _, c in failed)
    return ratio(len(recovered), len(failed), episodes=episodes)


def _target(call: ToolCall) -> tuple[str, str]:
    """Return the tool and its target: a file, or for a shell command its first word after `cd …` and assignments."""
    if call.command is None:
        return call.name, call.path or ""
    words = call.command.split(maxsplit=12)
    n = 0
    while n < len(words):
        if words[n] == "cd":
            n += 2
        elif "=" in words[n].split("/", 1)[0] or words[n] in ("sudo", "time", "&&", ";"):
            n += 1
        else:
            return call.name, words[n]
    return call.name, words[0] if words else ""


# The pattern of the first human message (design/signals.md#first-message).

_BY_KIND: dict[TurnKind, str] = {
    "plan_handoff": "plan_handoff",
    "scripted_prompt": "scripted_prompt",
    "slash_command": "slash_command",
    "attachment": "attachment_only",
}
_SEARCHED = 400


class _Rule(NamedTuple):
    """A label, the pattern that earns it, and conditions."""

    label: str
    pattern: re.Pattern[str]
    chars: int | None = None
    signs: str = ""
    verb: bool = False


_RULES = [
    _Rule(**{**rule, "pattern": deferred_pattern(rule["pattern"].replace("\n", ""))})
    for rule in word_lists("requests")["first_message"]
]
_CONTINUES = deferred_pattern(
    r"\A(?:(?:y|yes|yep|yeah|ok|okay|continue|proceed|go ahead|do it)\b|[1-3]\W*\Z"
    r"|(?:commit|push)\b(?=\W*\Z| (?:it|this|that|these|everything|all|and|to|now|please|the changes?)\b))"
)
_CONTINUATION_CHARS = 40


@signal("corpus.first_message_pattern", "enum", "label", version=2)
def first_message_pattern(view: SessionView, why: Evidence) -> str | Absent:
    """The first rule the first human turn meets: by its kind, then by its words in a fixed order, else `statement`.

    By the kind of turn 0: plan_handoff, scripted_prompt, slash_command, attachment_only (also empty text). Else by the
    cleaned text and the patterns of docs/patterns.md, the first that holds: paste_only (nothing is left), greeting,
    continuation (up to 40 characters), bug_report (in the first 400 characters), review_request (200), task_request
    (400), task_imperative (its first word is a verb of action), question (400), statement. Absent where words decide
    and are not English.

    Pitfalls: Also a proxy for the kind of task: who opens with a bug report is not angry but has a
    bug.
    """
    if not view.turns:
        return Absent("not_applicable", "no_turns")
    first = view.turns[0]
    why.support([first])
    label = _BY_KIND.get(first.kind) or ("attachment_only" if not first.text.strip() else None)
    if label:
        why.rule(f"turn of kind {first.kind}")
        return label
    text = clean(first.text)
    if not head(first.text).strip(" \u2022\n"):
        return "paste_only"
    if (other := view.foreign.get(first.turn)) is not None:
        return other
    low, searched = lowered(text), text[:_SEARCHED].lower()
    for rule in _RULES:
        if rule.label == "bug_report" and len(text) <= _CONTINUATION_CHARS and (match := _CONTINUES.search(low)):
            why.match(first, "continuation", text[: match.end()])
            return "continuation"
        if rule.signs and not any(sign in searched for sign in rule.signs.split()):
            continue  # cheaper than trying the pattern
        match = rule.pattern.search(low[: rule.chars])
        if match and (not rule.verb or match[1] in ACTIONS):
            why.match(first, rule.label, text[match.start() : match.end()])
            return rule.label
    return "statement"


MOST_ROWS = 25
LONG_CHARS = 120
"""A longer message is shown by its beginning."""
_DIGEST_BYTES = 12
_CUT = "\u2026"

_SECRET = deferred_pattern(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|hf|npm|akia|asia|aiza|eyj)[-_]?[\w-]{16,200}"
    r"|\b(?=[\w+-]{0,40}\d)[\w+-]{32,200}={0,2}"
    r"|(?<=://)[^\s/@]{1,100}:[^\s/@]{1,100}(?=@)|\b(?:password|passwd|secret|token|api[_-]?key)\s{0,3}[=:]\s{0,3}\S{1,200}"
)
_NAMES_OF_SECRETS = ("passw", "secret", "token", "key")
_LONG_RUN = b"x" * 18
"""The shortest beginning of a key, of two letters, and what must follow it."""
_IN_RUNS = bytes(ord("x" if chr(n).isalnum() or chr(n) in "_+-?" else " ") for n in range(128)).ljust(256)
"""Letters, digits and marks of keys; a question mark stands for all beyond ASCII."""
_ADDRESS = deferred_pattern(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_PATH = deferred_pattern(r"(?<![\w/:.])(?:[A-Za-z]:\\|~?/|\\\\)[\w.@~-]{1,100}[/\\][^\s'\"]{1,400}")


def _pooled(sessions: Sequence[dict[str, dict[str, Any]]]) -> list[dict[str, dict[str, Any]]]:
    """Merge messages by digest. `sessions` counts the sessions of a message; it is 1 where the key is missing."""
    pooled: dict[str, dict[str, Any]] = {}
    for session in sessions:
        for key, message in session.items():
            all_of_it = pooled.get(key)
            if all_of_it is None:
                pooled[key] = {"sessions": 1, **message}
            else:
                all_of_it["n"] += message["n"]
                all_of_it["sessions"] += message.get("sessions", 1)
    return [pooled]


@signal("corpus.message_counts", "obj", "messages", pool=_pooled, version=2, origin="this project")
def message_counts(view: SessionView, why: Evidence) -> dict[str, dict[str, Any]] | Absent:
    """How often each human message occurs, by a digest, with a sample. Secrets and names are masked first, then case,
    outer blanks and a final . or ! put aside; plan hand-offs and bare attachments excluded.

    Keys are BLAKE2b digests of 12 bytes of the folded text; values are n and sample: the folded text, after 120
    characters cut with `…`. Folded: [path], [address] and, after `str.casefold`, [secret] for matches of
    docs/patterns.md, without outer blanks and final `.`, `!` and blanks. Turns of kind plan_handoff, attachment and
    scripted_prompt, and empty texts, are left out; absent without another.

    Pitfalls: Raw material of corpus.top_duplicate_messages. Messages that differ only in what was masked are one.
    """
    messages = [t for t in view.turns if t.kind not in UNSPOKEN and t.text.strip()]
    if not messages:
        return Absent("not_applicable", "no_messages")
    why.support(messages)
    counts = Counter([_normal(t.text) for t in messages])
    return {
        hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).hexdigest(): {
            "n": n,
            "sample": text if len(text) <= LONG_CHARS else text[:LONG_CHARS] + _CUT,
        }
        for text, n in counts.items()
    }


@lru_cache(maxsize=1024)
def _normal(text: str) -> str:
    """Return the form that equal messages share. Masked before it is folded: rules know keys by their capitals."""
    from agentsignals.redaction import redacted  # noqa: PLC0415  (loaded where a value is asked for, not in each run)

    low = _masked(redacted(text))
    return low.rstrip(".! \n\t") or low


def _masked(text: str) -> str:
    """Mask paths, addresses and secrets of a text and fold its case. Each pattern runs only where a part occurs that it
    can't match without: twenty times as fast."""
    if "/" in text or "\\" in text:
        text = _PATH.sub("[path]", text)
    if "@" in text:
        text = _ADDRESS.sub("[address]", text)
    low = text.strip().casefold()
    may_hold_secret = (
        "://" in low
        or ((":" in low or "=" in low) and any(word in low for word in _NAMES_OF_SECRETS))
        or _LONG_RUN in low.encode("ascii", "replace").translate(_IN_RUNS)
    )
    return _SECRET.sub("[secret]", low) if may_hold_secret else low


@signal("corpus.top_duplicate_messages[]", "list[obj]", "rows", version=2, level="corpus", priority="P2")
def top_duplicate_messages(message_counts: Sequence[dict[str, dict[str, Any]]]) -> Measured | Absent:
    """The 25 most frequent human messages that occur at least twice (corpus.message_counts, by digest): text, n,
    sessions.

    Pitfalls: Secrets, addresses and absolute paths are hidden, as far as they are recognised.
    Why: One in five messages is a word or two: most of them are these.
    """
    if not message_counts:
        return Absent("not_applicable", "no_messages")
    (messages,) = _pooled(message_counts)
    repeated = {key: message for key, message in messages.items() if message["n"] > 1}
    often = sorted(repeated, key=lambda key: (-repeated[key]["n"], repeated[key]["sample"], key))
    rows: list[dict[str, Any]] = [
        {"text": repeated[key]["sample"], "n": repeated[key]["n"], "sessions": repeated[key]["sessions"]}
        for key in often[:MOST_ROWS]
    ]
    total = sum(message["n"] for message in messages.values())
    return Measured(rows, {"messages": total, "distinct": len(messages), "repeated": len(often)})


def _pooled_data_sets(sessions: Sequence[Figures]) -> list[Figures]:
    sets: dict[str, list[Figures]] = {}
    for session in sessions:
        sets.setdefault(session["place"], []).append(session)
    return [{"place": place, **pooled(those)} for place, those in sorted(sets.items())]


@signal("corpus.metric_inputs", "obj", "per metric", pool=_pooled_data_sets, version=2, source="derived",
        priority="P2", origin="agentsignals")  # fmt: skip
def metric_inputs(  # noqa: PLR0913  (the parameters are the needs of the signal)
    view: SessionView,
    why: Evidence,
    autonomy_ratio: float | Absent,
    session_length_events: int,
    read_before_edit_rate: float | Absent,
    session_cost_usd: float | Absent,
    first_message_pattern: str | Absent,
    short_messages: dict[str, int] | Absent,
    sentiment_messages: dict[str, dict[str, Any]] | Absent,
) -> Figures | Absent:
    """The session's input to each metric of its dataset, and the dataset's project.

    Keys: place (the session's `repo` in lower case, else its `cwd` without a worktree part); autonomy
    (corpus.autonomy_ratio); errors [failed, ok or failed]; tools {tool name: calls}; events
    (corpus.session_length_events); reads (corpus.read_before_edit_rate) and edits (edit calls that were not refused);
    cost; pattern (corpus.first_message_pattern); tokens [output, input with cache reads and writes] of the main thread;
    short [at most 20 characters, all]; felt {labeller: [labelled messages, time of the last label, NEGATIVE in turn 5,
    all in turn 5]}. Absent without a place.

    Pitfalls: Null where the session has no such value.
    Why: The input of corpus.cross_dataset_variance.
    """
    place = place_of(view.session.repo, view.session.cwd)
    if place is None:
        return Absent("not_applicable", "repo_unknown")
    why.denominator(view.turns)
    short = None if isinstance(short_messages, Absent) else short_messages
    felt: dict[str, list[int]] = {}  # each labeller's labels, time of the last, and the NEGATIVE and all of turn 5
    for name, judged in {} if isinstance(sentiment_messages, Absent) else sentiment_messages.items():
        labelled = [(turn, value) for turn, value, _ in judged["messages"] if value is not None]
        fifth = [value for turn, value in labelled if turn == PLATEAU]
        felt[name] = [len(labelled), judged["at"], fifth.count(NEGATIVE), len(fifth)]
    return {
        "place": place,
        "autonomy": _none_if_absent(autonomy_ratio),
        "errors": [len(view.errors), view.n_answered],
        "tools": dict(Counter([c.name for c in view.calls])),
        "events": session_length_events,
        "reads": _none_if_absent(read_before_edit_rate),
        "edits": len(view.edit_calls) - len([c for c in view.rejected if c.class_ == "edit"]),
        "cost": _none_if_absent(session_cost_usd),
        "pattern": _none_if_absent(first_message_pattern),
        "tokens": [view.usage.output_tokens or 0, view.usage.all_input],
        "short": [short["le_20"], short["n"]] if short else [0, 0],
        "felt": felt,
    }


class Variance(Row):
    """Variation of a metric between data sets, as a share of its mean (cv) or of its median (robust_cv)."""

    metric: str
    cv: float
    robust_cv: float | None
    n_datasets: int


@signal(
    "corpus.cross_dataset_variance[]", "list[obj]", "rows", version=2, level="corpus", source="derived", priority="P1"
)
def cross_dataset_variance(metric_inputs: Sequence[Figures]) -> Measured | Absent:
    """For each behavioural metric of agent-traces the coefficient of variation over data sets, plain and robust; the
    most different first.

    A data set is the sessions of one user.place, five or more; three are needed. Its metrics, of corpus.metric_inputs:
    the medians of autonomy and events; the mean of cost; sums over sums of errors, tokens and short; reads weighted by
    edits; the entropy of all tools; first messages of another kind than all data sets' commonest; NEGATIVE in turn 5.
    cv: standard deviation / mean; robust_cv: 1.4826 * median absolute deviation / median. Keys: metric, cv, robust_cv,
    n_datasets; by robust_cv, largest first.

    Pitfalls: Raw variances are not comparable across units; the seed does not say which it means. Data sets of fewer
    than five sessions are left out; neg_pct_turn5 needs labels, and is of the labeller with most of them.
    Why: The first row is the question of agent-traces: where do data sets differ most?
    """
    sets = _pooled_data_sets(metric_inputs)
    large = [[figures] for figures in sets if figures["sessions"] >= FEWEST_SESSIONS]
    if len(large) < FEWEST_SETS:
        return Absent("not_computable", "fewer_than_3_data_sets")
    rows: list[Variance] = []
    left_out: list[str] = []
    for metric, each in by_metric(large, sets).items():
        values = [v for v in each if v is not None]
        apart = spread(values)
        if apart is None:
            left_out.append(metric)
        else:
            rows.append(Variance(metric, *apart, len(values)))
    rows.sort(key=lambda row: (row.robust_cv is None, -(row.robust_cv or 0.0), row.metric))
    mode = commonest_pattern([figures for (figures,) in large])
    return Measured(rows, {"data_sets": len(large), "left_out": left_out, "first_message_pattern": mode})


def _none_if_absent(value: Any) -> Any:
    return None if isinstance(value, Absent) else value
