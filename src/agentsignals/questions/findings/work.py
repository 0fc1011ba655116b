"""Findings about the work: loops, failing tools, unchecked changes, hotspots, waiting, and pushback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from math import exp, fsum, lgamma, log, log1p
from operator import itemgetter
from statistics import median

from agentsignals.questions.estimates import by, clustered_share, n_sessions, ranked, tally
from agentsignals.questions.question import Inputs, Part, Question, Row, formatted
from agentsignals.questions.ranking import (
    LEAST_PART,
    SESSIONS,
    Answer,
    contrasts,
    finding_id,
    p_above,
    safe_name,
    sessions_sql,
    share_difference,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import (
    CALLED,
    EQUAL_FAILURES,
    FEWEST_EQUAL,
    LABEL,
    LOOPS,
    OBJECTIONS,
    PROGRAM,
    declared,
    place_by_session,
    read_queries,
)
from agentsignals.stats.intervals import FEWEST_CLUSTERS, wilson
from agentsignals.stats.validation import HALF, figures_of, share_text
from agentsignals.views.working_time import longest_sql

_TOOL = (
    "CASE WHEN class = 'test' OR shell_kind IN ('test', 'build') THEN coalesce(shell_kind, class)"
    f" WHEN class = 'shell' THEN {PROGRAM} WHEN class IN ('mcp', 'web', 'other') THEN name ELSE class END"
)
"""Name of the action: test or build, whatever runs it; the program of a shell call; a server's or search's tool by its
name; else the class of the tool, which each agent calls differently."""
_SQL = read_queries(__file__, program=PROGRAM, tool=_TOOL, longest=longest_sql(), label=LABEL)
_NO_CAUSE = "An association, not a cause."


def loops(inputs: Inputs) -> list[Answer]:
    calls: dict[str, int] = {row["session_id"]: row["n"] for row in inputs.many["calls"]}
    wasted: Counter[str] = Counter()
    longest = 0
    for row in inputs.many["runs"]:
        wasted[row["session_id"]] += 1
        longest = max(longest, row["equal_calls"])
    parts = ((session_id, wasted.get(session_id, 0), n) for session_id, n in calls.items())
    share = clustered_share(parts, place_by_session(inputs.rows["sessions"]))
    if not share.n:
        return []
    n = wasted.total()
    return [
        Answer(
            id="loops.failing",
            sentence=f"{n:,} of {share.n:,.0f} calls ({formatted(share.value, 'share')}) were loops: the same failing"
            " call"
            f" {FEWEST_EQUAL} or more times with nothing changed.",
            details=f"Loops in {len(wasted):,} of {len(calls):,} sessions; the longest has {longest:,} calls.",
            size=n,
            unit="calls",
            share=float(share.value or 0.0),
            interval=share.interval,
            n=len(calls),
            cause=with_source_lines(EQUAL_FAILURES),
            do="Interrupt the agent at the third identical failure. Write into its instructions what to do then.",
            caveat="An exact count. Other calls may come in between. Changes other than the agent's edits, such as a"
            f" server that starts, are not seen; {share.note}.",
            by_session={session_id: float(k) for session_id, k in wasted.items()},
        )
    ]


LOOPS_FINDING = Question(**declared("asked", "loops", sessions=SESSIONS, calls=CALLED, runs=LOOPS), function=loops)


# -- Failing tools

FEWEST_CALLS = 20
"""Calls of a tool before it is looked at."""
MOSTLY_FAILING = 0.5
"""Failing more often than working is said of a tool wherever it is used: what chance may have made is held against the
person's other calls, for no share of failures is everybody's."""
_CALLED = {"test": "test runs", "build": "builds", "edit": "edits", "read": "reads", "search": "searches"}
_CHECKS = ("test", "build")
"""Tools that are meant to fail, and so are no measure of other calls."""
_SOME_ARE_MEANT = "Some failures are normal: a check whether a file exists, or a test that finds a bug"
_CLASS_NAMES = {
    None: "unclassified error",
    "exit_nonzero": "unexplained exit code",
    "other": "unclassified error",
}


def failures(inputs: Inputs) -> list[Answer]:
    sessions, calls = inputs.rows["sessions"], inputs.many["calls"]
    places = place_by_session(sessions)
    by_use = [(row["tool"] in _CHECKS, row["session_id"], row["failed"], row["n"]) for row in calls]
    whole = max(1, sum(failed for _, _, failed, _ in by_use))
    measure = _summed((session_id, k, n) for is_check, session_id, k, n in by_use if not is_check)
    made = []
    for tool, of_tool in groupby(calls, itemgetter("tool")):
        rows = list(of_tool)
        failed = sum(row["failed"] for row in rows)
        if sum(row["n"] for row in rows) < FEWEST_CALLS or failed < LEAST_PART * whole:
            continue
        parts = _summed(map(itemgetter("session_id", "failed", "n"), rows))
        others = measure
        if tool not in _CHECKS:
            less = {session_id: (k, n) for session_id, k, n in parts}
            left = ((s, k - less.get(s, (0, 0))[0], n - less.get(s, (0, 0))[1]) for s, k, n in measure)
            others = [part for part in left if part[2]]
        share, rest = (clustered_share(each, places) for each in (parts, others))
        between = share_difference(share, rest)
        against = (
            f" Your other tools, tests and builds left out, fail in {formatted(rest.value, 'share')}."
            if between
            else ""
        )
        asked = (
            f"SELECT session_id, seq, name, command, error_class, status FROM ({_SQL['failures_rows']['calls']})"
            f" WHERE status = 'error' AND tool = {sql_text(tool)}"
        )
        error, told = _told(rows)
        called = _CALLED.get(tool, f"{safe_name(tool)} calls")
        made.append(
            Answer(
                id=finding_id("failures.often", tool),
                about=f"failures.{tool}",
                sentence=f"{called} fail more often than they work: {failed:,} of {share.n:,.0f}"
                f" ({formatted(share.value, 'share')}).{against}",
                details=f"{told}.",
                size=failed,
                unit="failed calls",
                share=failed / whole if float(share.value or 0) > MOSTLY_FAILING else 0.0,
                interval=share.interval,
                p=between[1] if between else p_above(share, MOSTLY_FAILING),
                n=n_sessions(rows),
                cause=with_source_lines(asked),
                do=f"Look at the failed {called}, first at {error}. Fix or replace the tool.",
                caveat=f"{_SOME_ARE_MEANT}; {share.note}.",
                by_session={session_id: k for session_id, k, _ in parts if k},
            )
        )
        for contrast in contrasts(parts, sessions):
            error, told = _told([row for row in rows if row["session_id"] in contrast.in_group])
            there = formatted(contrast.rest.value, "share")
            made.append(
                Answer(
                    id=finding_id(f"failures.{contrast.key}", f"{tool} {contrast.value}"),
                    about=f"failures.{tool}",
                    sentence=f"{formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f} {called}"
                    f" {contrast.where} failed, compared with {there} in {contrast.matched}.",
                    details=f"{told}.",
                    **contrast.more(sum(n for _, _, n in parts), "failed calls", whole),
                    cause=with_source_lines(f"{asked} AND {sessions_sql(contrast.in_group)}"),
                    do=f"Look at the failed {called} {contrast.where}, first at {error}.",
                    caveat=f"{_NO_CAUSE} {_SOME_ARE_MEANT}; {contrast.group.note}.",
                    by_session={session_id: k for session_id, k, _ in parts if k and session_id in contrast.in_group},
                )
            )
    return made


def _summed(parts: Iterable[Part]) -> list[Part]:
    ks: dict[str, float] = {}
    ns: dict[str, float] = {}
    for session_id, k, n in parts:
        ks[session_id] = ks.get(session_id, 0.0) + k
        ns[session_id] = ns.get(session_id, 0.0) + n
    return [(session_id, k, ns[session_id]) for session_id, k in ks.items()]


def _told(rows: list[Row]) -> tuple[str, str]:
    """The most frequent error (`mostly` only for more than half of the failed calls), and how much works later."""
    kinds: Counter[str] = Counter()
    for row in rows:
        class_ = row["error_class"]
        kinds[_CLASS_NAMES.get(class_) or class_.replace("_", " ")] += row["failed"]
    error = f"“{safe_name(kinds.most_common(1)[0][0])}”" if kinds else "errors"
    failed = kinds.total()
    is_most = max(kinds.values(), default=0) / (failed or 1) > 0.5
    told = f"Most errors are {error}" if is_most else f"The most common error is {error}"
    if failed:
        waited = [row["minutes"] for row in rows if row["minutes"] is not None]
        told += f". {formatted(sum(row['mended'] for row in rows) / failed, 'share')} of the failed calls succeed later"
        told += f", after a median of {formatted(60 * median(waited), 'seconds')}" if waited else " in the session"
    return error, told


FAILURES_FINDING = Question(**declared("asked", "failures", sessions=SESSIONS), function=failures)


# -- Changes that were not tested


def untested_changes(inputs: Inputs) -> list[Answer]:
    rows = list(inputs.many["changed"])
    unchecked = {row["session_id"] for row in rows if row["checked"] is None or row["checked"] < row["edited"]}
    never = {row["session_id"] for row in rows if row["checked"] is None}
    parts = [(row["session_id"], float(row["session_id"] in unchecked), 1.0) for row in rows]
    made = []
    for contrast in contrasts(parts, inputs.rows["sessions"]):
        of, rest = contrast.in_group & unchecked, formatted(contrast.rest.value, "share")
        asked = (
            f"SELECT * FROM ({_SQL['untested_changes_rows']['last_edit']}) WHERE {sessions_sql(of) if of else 'false'}"
        )
        made.append(
            Answer(
                id=finding_id(f"untested-changes.{contrast.key}", contrast.value),
                about="untested-changes",
                sentence=f"{formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f} sessions"
                f" {contrast.where} that changed code left the last change untested, compared with {rest} in"
                f" {contrast.matched}.",
                details=f"{len(of & never):,} of these untested sessions never ran a test or build.",
                **contrast.more(len(rows), "sessions", len(rows)),
                cause=with_source_lines(asked),
                do="Add the test or build command to the instruction file (AGENTS.md, CLAUDE.md) for sessions"
                f" {contrast.where}.",
                caveat=f"{_NO_CAUSE} Tests that you ran yourself, or that ran by a command not known as a test or"
                f" build, are not seen; {contrast.group.note}.",
                by_session=dict.fromkeys(of, 1.0),
            )
        )
    return made


UNTESTED_CHANGES_FINDING = Question(
    **declared("asked", "untested_changes", sessions=SESSIONS), function=untested_changes
)


# -- Hotspots

HOTSPOT_CHANCE = 0.25
"""A file that more than a quarter of a repository's sessions change is surely one that everything goes through."""
HOTSPOT_SHARE = 0.5
"""Share of sessions from which a file is reported."""


def hotspots(inputs: Inputs) -> list[Answer]:
    places = place_by_session(inputs.rows["sessions"])
    files: dict[str, dict[str, set[str]]] = {}
    for row in inputs.many["edits"]:
        if (place := places.get(row["session_id"])) is not None:
            files.setdefault(place, {}).setdefault(row["path"], set()).add(row["session_id"])
    everyone = {place: set[str]().union(*by_path.values()) for place, by_path in files.items()}
    whole = sum(map(len, everyone.values()))
    made = []
    for place, ids_here in sorted(everyone.items()):
        n = len(ids_here)
        if n < FEWEST_CLUSTERS:
            continue
        # The file that most sessions change. It was chosen among all: its p counts as often as there are.
        path, ids = min(files[place].items(), key=lambda pair: (-len(pair[1]), pair[0]))
        k, name = len(ids), safe_name(path)
        # The probability that so many of n sessions change a file that `HOTSPOT_CHANCE` of them do. By logarithms: from
        # some thousand sessions on the number of ways to choose them is no float.
        chances = (
            exp(
                lgamma(n + 1)
                - lgamma(i + 1)
                - lgamma(n - i + 1)
                + i * log(HOTSPOT_CHANCE)
                + (n - i) * log1p(-HOTSPOT_CHANCE)
            )
            for i in range(k, n + 1)
        )
        asked = (
            f"SELECT session_id, min(seq) AS seq, path, count(DISTINCT seq) AS edits FROM edits"
            f" WHERE thread = 'main' AND path = {sql_text(path)}"
        )
        made.append(
            Answer(
                id=finding_id("hotspots", f"{place} {path}"),
                sentence=f"{name} was changed in {k:,} of {n:,} sessions with edits in {safe_name(place)}"
                f" ({formatted(k / n, 'share')}): a hotspot.",
                size=k,
                unit="sessions",
                share=k / whole if k / n >= HOTSPOT_SHARE else 0.0,
                interval=wilson(k, n),
                p=min(1.0, len(files[place]) * fsum(chances)),
                n=n,
                cause=with_source_lines(f"{asked} AND {sessions_sql(ids)} GROUP BY session_id, path"),
                do=f"Check why so many changes go through {name}. Consider splitting it.",
                caveat="A frequently changed file need not be a bad one. The figure holds for this repository only.",
                by_session=dict.fromkeys(ids, 1.0),
            )
        )
    return made


HOTSPOTS_FINDING = Question(**declared("asked", "hotspots", sessions=SESSIONS), function=hotspots)


# -- Waiting

LEAST_TIME = 0.25
"""The share of the time from which it is worth a sentence."""
LEAST_HOURS = 1.0
_MOST_NAMED = 3
_OFTEN = 0.2
"""Share of the waits from which their kind is worth a sentence of advice."""
_ADVICE = {
    "call": "Allow-list the commands you always approve",
    "edit": "Let the agent edit files without asking",
    "question": "Turn on notifications: the agent asks you questions and shows you plans",
}


def waiting(inputs: Inputs) -> list[Answer]:
    """Waits of a minute to an hour (a longer one is no habit: nobody was there), and the time that commands ran."""
    times = {row["session_id"]: row for row in inputs.rows["times"]}
    made = []
    waits = [row for row in inputs.rows["waits"] if row["session_id"] in times]
    waited = {s: seconds / 3600 for s, seconds in tally(waits, "session_id", weight="waited_s").items()}
    if (size := fsum(waited.values())) >= LEAST_HOURS:
        whole = fsum(
            row["worked_s"] / 3600 + max(row["waited_s"] / 3600, waited.get(s, 0.0)) for s, row in times.items()
        )
        by_kind = ranked(tally(waits, "kind", weight="waited_s"))
        kinds = [kind for kind, seconds in by_kind if seconds >= _OFTEN * 3600 * size]
        tools = [tool for tool, _ in ranked(tally(waits, "tool", weight="waited_s"))[:_MOST_NAMED]]
        counts = Counter(row["tool"] for row in waits)
        *most, last = [f"{safe_name(tool)} ({counts[tool]:,})" for tool in tools]
        named = f"{', '.join(most)} and {last}" if most else last
        ended = [row for row in inputs.many["ended"] if row["tool"] in tools]
        refused, of = sum(row["refused"] for row in ended), sum(row["n"] for row in ended)
        alone = formatted(fsum(row["left_alone_s"] for row in times.values()), "seconds")
        longer = f" Waits of more than an hour ({alone}) are not counted: nights and breaks."
        middle = formatted(median(row["waited_s"] for row in waits), "seconds")
        made.append(
            Answer(
                id="waiting.for-you",
                sentence=f"Agents were blocked on your answer or approval for {formatted(3600 * size, 'seconds')}"
                f" ({formatted(size / whole, 'share')} of the time from prompt to answer).",
                details=f"{len(waits):,} waits of 1 min to 1 h (median {middle}), most with {named}. You refused"
                f" {refused:,} of {of:,} calls to these tools ({formatted(refused / of if of else 0.0, 'share')}).",
                size=size,
                unit="hours",
                share=size / whole if size >= LEAST_TIME * whole else 0.0,
                n=len(waited),
                cause=with_source_lines(_SQL["waiting_rows"]["waits"], "waited_s"),
                part="waited_s",
                do=f"{'. '.join(_ADVICE[kind] for kind in kinds)}.",
                saves=fsum(seconds for kind, seconds in by_kind if kind in kinds and kind != "question") / 3600,
                caveat="Few logs record when a call was approved. In other logs, a call counts as waiting once it is"
                " open for longer than the time limit of its kind; the machine may also have slept."
                f"{longer if any(row['left_alone_s'] for row in times.values()) else ''}",
                by_session=waited,
            )
        )
    for tool, rows in groupby(inputs.many["ran"], itemgetter("tool")):
        hours = {
            row["session_id"]: min(row["ran_s"], times[row["session_id"]]["worked_s"]) / 3600
            for row in rows
            if row["session_id"] in times
        }
        size = fsum(hours.values())
        if size < LEAST_HOURS:
            continue
        share = size / fsum(row["worked_s"] / 3600 for row in times.values())
        asked = f"SELECT session_id, seq, ran_s FROM ({_SQL['waiting_rows']['ran']}) WHERE tool = {sql_text(tool)}"
        made.append(
            Answer(
                id=finding_id("waiting", tool),
                sentence=f"{safe_name(tool)} ran for {formatted(3600 * size, 'seconds')} in {len(hours):,} sessions:"
                f" {formatted(share, 'share')} of the agents' working time.",
                size=size,
                unit="hours",
                share=share if share >= LEAST_TIME else 0.0,
                n=len(hours),
                cause=with_source_lines(asked, "ran_s"),
                part="ran_s",
                do="Make it faster, run it in the background, or run less of it (one test, one package).",
                caveat="Overlapping calls count once. A call without a logged start counts for at most the time limit"
                " of its kind.",
                by_session=hours,
            )
        )
    return made


WAITING_FINDING = Question(**declared("asked", "waiting", sessions=SESSIONS), function=waiting)


# -- Pushback


def pushback(inputs: Inputs) -> list[Answer]:
    # The classes of pushback that may be spoken of, with their figures against most things judged.
    best = {}
    for figure in sorted(figures_of("chat.pushback_type"), key=lambda figure: figure.named):
        if figure.precision is not None and figure.value != "non_pushback":
            best[figure.value] = figure
    classes = {value: figure for value, figure in best.items() if (figure.precision or 0) >= HALF}
    validity = min((figure.precision or 0.0 for figure in classes.values()), default=0.0)
    recalls = "; ".join(
        f"{value.replace('_', ' ')} {share_text(figure.recall, figure.recall_interval)}"
        for value, figure in sorted(classes.items())
    )
    parts = []
    for session_id, rows in by(inputs.rows["turns"], "session_id").items():
        k = float(sum(row["n"] for row in rows if row["label"] in classes))
        parts.append((session_id, k, float(sum(row["n"] for row in rows))))
    pushed = {session_id: k for session_id, k, _ in parts if k}
    if len(pushed) < FEWEST_CLUSTERS:
        return []
    # Turns that push back are few by nature: how many of them are more than elsewhere is what ranks.
    whole, turns = sum(pushed.values()), sum(n for _, _, n in parts)
    unjudged = inputs.unjudged.get("chat.pushback_type", "")
    made = []
    for contrast in contrasts(parts, inputs.rows["sessions"]):
        of = contrast.in_group & pushed.keys()
        rest = formatted(contrast.rest.value, "share")
        asked = f"{_SQL['pushback_rows']['objecting']} AND {sessions_sql(of) if of else 'false'}"
        made.append(
            Answer(
                id=finding_id(f"pushback.{contrast.key}", contrast.value),
                about="pushback",
                sentence=f"You object to or correct the agent in at least {formatted(contrast.group.value, 'share')} of"
                f" {contrast.group.n:,.0f} follow-up prompts {contrast.where}, compared with {rest} in"
                f" {contrast.matched}.",
                **contrast.more(turns, "prompts", whole),
                cause=with_source_lines(asked),
                do=f"Read the prompts {contrast.where} in which you did so, and add what you keep correcting to your"
                " instruction file (AGENTS.md, CLAUDE.md).",
                caveat=f"{_NO_CAUSE} Found by English word patterns: at least {formatted(validity, 'share')} of what"
                f" they find is right. Of the real objections they find: {recalls}; {contrast.group.note}.",
                details=unjudged and f"{unjudged}.",
                validity=validity,
                at_least=True,
                by_session={session_id: pushed[session_id] for session_id in of},
            )
        )
    return made


PUSHBACK_FINDING = Question(**declared("asked", "pushback", sessions=SESSIONS, turns=OBJECTIONS), function=pushback)
