"""Findings about the work: loops, failing tools, unchecked changes, hotspots, waiting, and pushback."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import repeat
from math import exp, fsum, lgamma, log, log1p
from statistics import median
from typing import Any

from agentsignals.questions.estimates import by, ranked, tally
from agentsignals.questions.question import Inputs, Question, Rows, formatted
from agentsignals.questions.ranking import (
    LEAST_PART,
    Answer,
    Candidate,
    Cells,
    Contrast,
    Kind,
    cells_of,
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
    FACTS,
    FEWEST_EQUAL,
    LABEL,
    LOOPS,
    OBJECTIONS,
    PROGRAM,
    declared,
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
_CHECKS = ("test", "build")
"""Tools that are meant to fail, and so are no measure of other calls."""
_SQL = read_queries(__file__, program=PROGRAM, tool=_TOOL, longest=longest_sql(), label=LABEL, checks=str(_CHECKS))
_NO_CAUSE = "An association, not a cause."


def _cells(inputs: Inputs) -> Cells:
    return inputs.many["sessions"].derived(cells_of)


def loops(inputs: Inputs) -> list[Answer]:
    cells, (sessions, ns) = _cells(inputs), inputs.many["calls"].columns("session_id", "n")
    looping, equal = inputs.many["runs"].columns("session_id", "equal_calls")
    wasted, longest = Counter(looping), max(equal, default=0)
    share = cells.share(cells.counted(sessions, map(wasted.__getitem__, sessions), ns))
    if not share.n:
        return []
    n = wasted.total()
    return [
        Answer(
            id="loops.failing",
            sentence=f"{n:,} of {share.n:,.0f} calls ({formatted(share.value, 'share')}) were loops: the same failing"
            " call"
            f" {FEWEST_EQUAL} or more times with nothing changed.",
            details=f"Loops in {len(wasted):,} of {len(ns):,} sessions; the longest has {longest:,} calls.",
            size=n,
            unit="calls",
            share=float(share.value or 0.0),
            interval=share.interval,
            n=len(ns),
            cause=with_source_lines(EQUAL_FAILURES),
            do="Interrupt the agent at the third identical failure. Write into its instructions what to do then.",
            caveat="An exact count. Other calls may come in between. Changes other than the agent's edits, such as a"
            f" server that starts, are not seen; {share.note}.",
            by_session={session_id: float(k) for session_id, k in wasted.items()},
        )
    ]


LOOPS_FINDING = Question(**declared("asked", "loops", sessions=FACTS, calls=CALLED, runs=LOOPS), function=loops)


# -- Failing tools

FEWEST_CALLS = 20
"""Calls of a tool before it is looked at."""
MOSTLY_FAILING = 0.5
"""Failing more often than working is said of a tool wherever it is used: what chance may have made is held against the
person's other calls, for no share of failures is everybody's."""
_CALLED = {"test": "test runs", "build": "builds", "edit": "edits", "read": "reads", "search": "searches"}
_SOME_ARE_MEANT = "Some failures are normal: a check whether a file exists, or a test that finds a bug"
_CLASS_NAMES = {
    None: "unclassified error",
    "exit_nonzero": "unexplained exit code",
    "other": "unclassified error",
}


def failures(inputs: Inputs) -> list[Answer]:
    cells = _cells(inputs)
    numbers = {facts: number for number, facts in enumerate(cells.facts)}
    tools: defaultdict[str | None, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for place, agent, model, tool, *kind, sessions in zip(
        *inputs.many["kinds"].columns("place", "agent", "model", "tool", "k", "n", "k_all", "n_all", "sessions"),
        strict=True,
    ):
        tools[tool][numbers[place, agent, model], *kind] += sessions
    # Without a tool: the calls of all that are a measure.
    measure = Counter({(cell, k, n): sessions for (cell, k, n, *_), sessions in tools.pop(None, {}).items()})
    whole = max(1, sum(sessions * k for of in tools.values() for (_, k, *_), sessions in of.items()))
    made: list[Answer] = []
    for tool, kinds in sorted((tool, kinds) for tool, kinds in tools.items() if tool is not None):
        n_failed, n = (sum(sessions * kind[at] for kind, sessions in kinds.items()) for at in (1, 2))
        if n < FEWEST_CALLS or n_failed < LEAST_PART * whole:
            continue
        of_tool: Counter[Kind] = Counter()
        others: Counter[Kind] = Counter(measure)
        for (cell, k, n_here, k_all, n_all), sessions in kinds.items():
            of_tool[cell, k, n_here] += sessions
            if tool not in _CHECKS:
                others[cell, k_all, n_all] -= sessions
                others[cell, k_all - k, n_all - n_here] += sessions
        others = Counter({kind: sessions for kind, sessions in others.items() if kind[2] > 0 and sessions > 0})
        share, rest = cells.share(of_tool), cells.share(others)
        between = share_difference(share, rest)
        against = (
            f" Your other tools, tests and builds left out, fail in {formatted(rest.value, 'share')}."
            if between
            else ""
        )
        called = _CALLED.get(tool, f"{safe_name(tool)} calls")
        told = partial(_failing, inputs.many["calls"], tool, called, cells)
        made.append(
            Candidate(
                id=finding_id("failures.often", tool),
                about=f"failures.{tool}",
                sentence=f"{called} fail more often than they work: {n_failed:,} of {share.n:,.0f}"
                f" ({formatted(share.value, 'share')}).{against}",
                size=n_failed,
                unit="failed calls",
                share=n_failed / whole if float(share.value or 0) > MOSTLY_FAILING else 0.0,
                interval=share.interval,
                p=between[1] if between else p_above(share, MOSTLY_FAILING),
                n=kinds.total(),
                caveat=f"{_SOME_ARE_MEANT}; {share.note}.",
                told=told,
            )
        )
        for contrast in contrasts(of_tool, cells):
            there = formatted(contrast.rest.value, "share")
            made.append(
                Candidate(
                    id=finding_id(f"failures.{contrast.key}", f"{tool} {contrast.value}"),
                    about=f"failures.{tool}",
                    sentence=f"{formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f} {called}"
                    f" {contrast.where} failed, compared with {there} in {contrast.matched}.",
                    **contrast.more(n, "failed calls", whole),
                    caveat=f"{_NO_CAUSE} {_SOME_ARE_MEANT}; {contrast.group.note}.",
                    told=partial(told, contrast),
                )
            )
    return made


def _failing(calls: Rows, tool: str, called: str, cells: Cells, contrast: Contrast | None = None) -> dict[str, Any]:
    """Return the evidence of a tool that fails: everywhere, or where it fails more often. `calls`: those that fail."""
    tools, sessions, classes, failures, mended, minutes = calls.columns(
        "tool", "session_id", "error_class", "failed", "mended", "minutes"
    )
    rows = [row for row, name in enumerate(tools) if name == tool]
    failed: dict[str, float] = {}
    for row in rows:
        failed[sessions[row]] = failed.get(sessions[row], 0.0) + failures[row]
    asked = (
        f"SELECT session_id, seq, name, command, error_class, status FROM ({_SQL['failures_rows']['calls']})"
        f" WHERE status = 'error' AND tool = {sql_text(tool)}"
    )
    if contrast is not None:
        failed = cells.among(failed, contrast.in_group)
        rows = [row for row in rows if cells.of[sessions[row]] in contrast.in_group]
        asked += f" AND {sessions_sql(failed)}"
    # The most frequent error: `mostly` only for more than half of the failed calls.
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds[_CLASS_NAMES.get(classes[row]) or classes[row].replace("_", " ")] += failures[row]
    error = f"“{safe_name(ranked(kinds)[0][0])}”" if kinds else "errors"
    n = kinds.total()
    told = (
        f"Most errors are {error}" if max(kinds.values(), default=0) > 0.5 * n else f"The most common error is {error}"
    )
    if n:
        waited = [minutes[row] for row in rows if minutes[row] is not None]
        told += f". {formatted(sum(mended[row] for row in rows) / n, 'share')} of the failed calls succeed later"
        told += f", after a median of {formatted(60 * median(waited), 'seconds')}" if waited else " in the session"
    first = f"Look at the failed {called}{f' {contrast.where}' if contrast else ''}, first at {error}."
    return {
        "details": f"{told}.",
        "do": first if contrast else f"{first} Fix or replace the tool.",
        "cause": with_source_lines(asked),
        "by_session": failed,
    }


FAILURES_FINDING = Question(**declared("asked", "failures", sessions=FACTS), function=failures)


# -- Changes that were not tested


def untested_changes(inputs: Inputs) -> list[Answer]:
    cells, rows = _cells(inputs), inputs.many["changed"]
    sessions, edited, checked = rows.columns("session_id", "edited", "checked")
    seen = zip(sessions, edited, checked, strict=True)
    unchecked = {session_id: 1.0 for session_id, at, check in seen if check is None or check < at}
    ks = map(unchecked.get, sessions, repeat(0.0))

    def told(contrast: Contrast) -> dict[str, Any]:
        of = cells.among(unchecked, contrast.in_group)
        never = sum(check is None and s in of for s, check in zip(sessions, checked, strict=True))
        among = sessions_sql(of) if of else "false"
        return {
            "details": f"{never:,} of these untested sessions never ran a test or build.",
            "cause": with_source_lines(f"SELECT * FROM ({_SQL['untested_changes_rows']['last_edit']}) WHERE {among}"),
            "by_session": of,
        }

    return [
        Candidate(
            id=finding_id(f"untested-changes.{contrast.key}", contrast.value),
            about="untested-changes",
            sentence=f"{formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f} sessions"
            f" {contrast.where} that changed code left the last change untested, compared with"
            f" {formatted(contrast.rest.value, 'share')} in {contrast.matched}.",
            **contrast.more(len(rows), "sessions", len(rows)),
            do="Add the test or build command to the instruction file (AGENTS.md, CLAUDE.md) for sessions"
            f" {contrast.where}.",
            caveat=f"{_NO_CAUSE} Tests that you ran yourself, or that ran by a command not known as a test or"
            f" build, are not seen; {contrast.group.note}.",
            told=partial(told, contrast),
        )
        for contrast in contrasts(cells.counted(sessions, ks, repeat(1.0)), cells)
    ]


UNTESTED_CHANGES_FINDING = Question(**declared("asked", "untested_changes", sessions=FACTS), function=untested_changes)


# -- Hotspots

HOTSPOT_CHANCE = 0.25
"""A file that more than a quarter of a repository's sessions change is surely one that everything goes through."""
HOTSPOT_SHARE = 0.5
"""Share of sessions from which a file is reported."""


def hotspots(inputs: Inputs) -> list[Answer]:
    cells = _cells(inputs)
    files: dict[str, dict[str, set[str]]] = {}
    for session_id, path in zip(*inputs.many["edits"].columns("session_id", "path"), strict=True):
        if (place := cells.facts[cells.of[session_id]][0]) is not None:
            files.setdefault(place, {}).setdefault(path, set()).add(session_id)
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


HOTSPOTS_FINDING = Question(**declared("asked", "hotspots", sessions=FACTS), function=hotspots)


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
    times = inputs.many["times"]
    worked = dict(zip(*times.columns("session_id", "worked_s"), strict=True))
    made = []
    waits = [row for row in inputs.many["waits"] if row["session_id"] in worked]
    waited = {s: seconds / 3600 for s, seconds in tally(waits, "session_id", weight="waited_s").items()}
    if (size := fsum(waited.values())) >= LEAST_HOURS:
        by_signal = zip(*times.columns("session_id", "worked_s", "waited_s"), strict=True)
        whole = fsum([here / 3600 + max(open_s / 3600, waited.get(s, 0.0)) for s, here, open_s in by_signal])
        by_kind = ranked({kind: fsum(row["waited_s"] for row in of) for kind, of in by(waits, "kind").items()})
        kinds = [kind for kind, seconds in by_kind if seconds >= _OFTEN * 3600 * size]
        by_tool = by(waits, "tool")
        tools = [tool for tool, _ in ranked({t: fsum(row["waited_s"] for row in of) for t, of in by_tool.items()})]
        tools = tools[:_MOST_NAMED]
        *most, last = [f"{safe_name(tool)} ({len(by_tool[tool]):,})" for tool in tools]
        named = f"{', '.join(most)} and {last}" if most else last
        ended = zip(*inputs.many["ended"].columns("tool", "refused", "n"), strict=True)
        calls = [(n_refused, n) for tool, n_refused, n in ended if tool in tools]
        refused, of = sum(n for n, _ in calls), sum(n for _, n in calls)
        alone = fsum(*times.columns("left_alone_s"))
        longer = f" Waits of more than an hour ({formatted(alone, 'seconds')}) are not counted: nights and breaks."
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
                f"{longer if alone else ''}",
                by_session=waited,
            )
        )
    hours_worked = fsum([seconds / 3600 for seconds in worked.values()])
    together: defaultdict[str, list[float]] = defaultdict(list)
    for tool, of in zip(*inputs.many["ran"].columns("tool", "hours"), strict=True):
        together[tool] += of

    def hours(tool: str) -> dict[str, Any]:
        every = zip(*inputs.many["each_ran"].columns("tool", "session_id", "hours"), strict=True)
        return {"by_session": {session_id: part for name, session_id, part in every if name == tool}}

    for tool, parts in sorted(together.items()):
        if (size := fsum(parts)) < LEAST_HOURS:
            continue
        share = size / hours_worked
        asked = f"SELECT session_id, seq, ran_s FROM ({_SQL['waiting_rows']['ran']}) WHERE tool = {sql_text(tool)}"
        made.append(
            Candidate(
                id=finding_id("waiting", tool),
                sentence=f"{safe_name(tool)} ran for {formatted(3600 * size, 'seconds')} in {len(parts):,} sessions:"
                f" {formatted(share, 'share')} of the agents' working time.",
                size=size,
                unit="hours",
                share=share if share >= LEAST_TIME else 0.0,
                n=len(parts),
                cause=with_source_lines(asked, "ran_s"),
                part="ran_s",
                do="Make it faster, run it in the background, or run less of it (one test, one package).",
                caveat="Overlapping calls count once. A call without a logged start counts for at most the time limit"
                " of its kind.",
                told=partial(hours, tool),
            )
        )
    return made


WAITING_FINDING = Question(**declared("asked", "waiting"), function=waiting)


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
    of: defaultdict[str, float] = defaultdict(float)
    pushed: defaultdict[str, float] = defaultdict(float)
    for session_id, label, n in zip(*inputs.many["turns"].columns("session_id", "label", "n"), strict=True):
        of[session_id] += n
        if label in classes:
            pushed[session_id] += n
    if len(pushed) < FEWEST_CLUSTERS:
        return []
    # Turns that push back are few by nature: how many of them are more than elsewhere is what ranks.
    whole, turns = sum(pushed.values()), sum(of.values())
    cells, unjudged = _cells(inputs), inputs.unjudged.get("chat.pushback_type", "")

    def told(contrast: Contrast) -> dict[str, Any]:
        here = cells.among(pushed, contrast.in_group)
        among = sessions_sql(here) if here else "false"
        asked = f"{_SQL['pushback_rows']['objecting']} AND {among}"
        return {"cause": with_source_lines(asked), "by_session": here}

    return [
        Candidate(
            id=finding_id(f"pushback.{contrast.key}", contrast.value),
            about="pushback",
            sentence=f"You object to or correct the agent in at least {formatted(contrast.group.value, 'share')} of"
            f" {contrast.group.n:,.0f} follow-up prompts {contrast.where}, compared with"
            f" {formatted(contrast.rest.value, 'share')} in {contrast.matched}.",
            **contrast.more(turns, "prompts", whole),
            do=f"Read the prompts {contrast.where} in which you did so, and add what you keep correcting to your"
            " instruction file (AGENTS.md, CLAUDE.md).",
            caveat=f"{_NO_CAUSE} Found by English word patterns: at least {formatted(validity, 'share')} of what"
            f" they find is right. Of the real objections they find: {recalls}; {contrast.group.note}.",
            details=unjudged and f"{unjudged}.",
            validity=validity,
            at_least=True,
            told=partial(told, contrast),
        )
        for contrast in contrasts(cells.counted(of, map(pushed.get, of, repeat(0.0)), of.values()), cells)
    ]


PUSHBACK_FINDING = Question(**declared("asked", "pushback", sessions=FACTS, turns=OBJECTIONS), function=pushback)
