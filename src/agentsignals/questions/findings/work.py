"""Findings about the work: loops, failing tools, unchecked changes, hotspots, waiting, and pushback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from math import exp, fsum, lgamma, log, log1p
from operator import itemgetter
from statistics import median

from agentsignals.questions.estimates import Part, by, clustered_share_alone, ranked, tally
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import (
    LEAST_PART,
    SESSIONS,
    Answer,
    Contrast,
    contrasts,
    finding_id,
    p_above,
    safe_name,
    sessions_sql,
    share_difference,
    share_fields,
    sql_text,
    with_source_lines,
)
from agentsignals.questions.sql import LABEL, PROGRAM, place_by_session, read_queries
from agentsignals.stats.intervals import FEWEST_CLUSTERS, wilson
from agentsignals.stats.validation import HALF, Figure, figures_of, share_text
from agentsignals.views.working_time import longest_sql

FEWEST_EQUAL = 3
"""Equal failing calls, with no success of the same call and no edit between, from which they are a circle: once more is
a retry."""
_SQL = read_queries(__file__, program=PROGRAM, longest=longest_sql(), fewest_equal=str(FEWEST_EQUAL))


def circles(inputs: Inputs) -> list[Answer]:
    calls: dict[str, int] = {row["session_id"]: row["n"] for row in inputs.many["calls"]}
    wasted: dict[str, int] = {}
    longest = 0
    for row in inputs.many["runs"]:
        wasted[row["session_id"]] = wasted.get(row["session_id"], 0) + 1
        longest = max(longest, row["equal_calls"])
    parts = ((session_id, wasted.get(session_id, 0), n) for session_id, n in calls.items())
    share = clustered_share_alone(parts, place_by_session(inputs.rows["sessions"]))
    if not share.n:
        return []
    n = sum(wasted.values())
    return [
        Answer(
            id="circles.failing",
            sentence=f"{n:,} of {share.n:,.0f} calls ({formatted(share.value, 'share')}) were the same failing call,"
            f" {FEWEST_EQUAL} times or more with nothing changed, in {len(wasted):,} of {len(calls):,} sessions: up to"
            f" {longest:,} times.",
            size=n,
            unit="calls",
            share=float(share.value or 0.0),
            interval=share.interval,
            n=len(calls),
            cause=with_source_lines(_SQL["circles_rows"]["equal_failures"]),
            do="Interrupt at the third equal failure; say in the instructions what to do when that call fails.",
            caveat="A count of this store, no estimate. Other calls may stand between. What changed outside the"
            f" agent's edits (a server that starts) is not seen; {share.note}.",
            by_session={session_id: float(k) for session_id, k in wasted.items()},
        )
    ]


CIRCLES_FINDING = Question(
    name="circles",
    question="Where does it go in circles?",
    queries={**_SQL["circles"], "sessions": SESSIONS},
    function=circles,
    sliced=frozenset({"calls", "runs"}),
)


# -- Failing tools

FEWEST_CALLS = 20
"""Calls of a tool before it is looked at."""
MOSTLY_FAILING = 0.5
"""Failing more often than working is said of a tool wherever it is used: what chance may have made is held against the
person's other calls, for no share of failures is everybody's."""
_CHECKS = ("test", "build")
"""Tools that are meant to fail, and so are no measure of other calls."""
_SOME_ARE_MEANT = "Some failures are probes (does this file exist?), and tests fail because they are run"


def failures(inputs: Inputs) -> list[Answer]:
    sessions = inputs.rows["sessions"]
    places = place_by_session(sessions)
    calls = inputs.many["calls"]
    by_use = [(row["tool"] in _CHECKS, row["session_id"], row["failed"], row["n"]) for row in calls]
    whole = max(1, sum(failed for _, _, failed, _ in by_use))
    measure = _summed((session_id, k, n) for is_check, session_id, k, n in by_use if not is_check)
    made = []
    for tool, of_tool in groupby(calls, itemgetter("tool")):
        rows = list(of_tool)
        failed = sum(row["failed"] for row in rows)
        if sum(row["n"] for row in rows) < FEWEST_CALLS or failed < LEAST_PART * whole:
            continue
        parts = _parts(rows)
        made.append(_often(tool, rows, measure if tool in _CHECKS else _without(parts, measure), places, whole))
        n = sum(n for _, _, n in parts)
        made += [_more(tool, rows, contrast, n, whole) for contrast in contrasts(parts, sessions)]
    return made


def _parts(rows: Iterable[Row]) -> list[Part]:
    """Failed calls and calls of each session."""
    return _summed(map(itemgetter("session_id", "failed", "n"), rows))


def _failed(rows: Iterable[Row]) -> dict[str, float]:
    return {session_id: k for session_id, k, _ in _parts(rows) if k}


def _summed(parts: Iterable[Part]) -> list[Part]:
    """The parts of each session as one."""
    ks: dict[str, float] = {}
    ns: dict[str, float] = {}
    for session_id, k, n in parts:
        ks[session_id] = ks.get(session_id, 0.0) + k
        ns[session_id] = ns.get(session_id, 0.0) + n
    return [(session_id, k, ns[session_id]) for session_id, k in ks.items()]


def _without(parts: list[Part], measure: list[Part]) -> list[Part]:
    """A person's calls but for these."""
    less = {session_id: (k, n) for session_id, k, n in parts}
    left = ((s, k - less.get(s, (0, 0))[0], n - less.get(s, (0, 0))[1]) for s, k, n in measure)
    return [(session_id, k, n) for session_id, k, n in left if n]


def _often(tool: str, rows: list[Row], others: list[Part], places: dict[str, str], whole: float) -> Answer:
    share, rest = (clustered_share_alone(each, places) for each in (_parts(rows), others))
    between = share_difference(share, rest)
    against = f", against {formatted(rest.value, 'share')} of your calls of other tools" if between else ""
    failed = sum(row["failed"] for row in rows)
    return Answer(
        id=finding_id("failures.often", tool),
        about=f"failures.{tool}",
        sentence=f"{safe_name(tool)} fails more often than it works: {failed:,} of {share.n:,.0f} calls"
        f" ({formatted(share.value, 'share')}){against}; {_mainly(rows)}{_mended(rows)}.",
        size=failed,
        unit="failed calls",
        share=failed / whole if float(share.value or 0) > MOSTLY_FAILING else 0.0,
        interval=share.interval,
        p=between[1] if between else p_above(share, MOSTLY_FAILING),
        n=len({row["session_id"] for row in rows}),
        cause=_rows(tool),
        do=f"Mend or replace it: see what {_error(rows)} says.",
        caveat=f"{_SOME_ARE_MEANT}; {share.note}.",
        by_session=_failed(rows),
    )


def _more(tool: str, rows: list[Row], contrast: Contrast, of_tool: float, whole: float) -> Answer:
    here = [row for row in rows if row["session_id"] in contrast.in_group]
    there = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"failures.{contrast.key}", f"{tool} {contrast.value}"),
        about=f"failures.{tool}",
        sentence=f"{safe_name(tool)} fails in {formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f}"
        f" calls {contrast.where}, against {there} in {contrast.matched}; {_mainly(here)}{_mended(here)}.",
        **contrast.more(of_tool, "failed calls", whole),
        cause=_rows(tool, f" AND {sessions_sql(contrast.in_group)}"),
        do=f"Look what {_error(here)} says {contrast.where}.",
        caveat=f"Goes with it, and need not be because of it. {_SOME_ARE_MEANT}; {contrast.group.note}.",
        by_session=_failed(here),
    )


def _rows(tool: str, condition: str = "") -> str:
    return with_source_lines(
        "SELECT session_id, seq, name, command, error_class, status FROM tool_calls"
        f" WHERE status = 'error' AND {_TOOL} = {sql_text(tool)}{condition}"
    )


_CLASS_NAMES = {
    None: "an error without a class",
    "exit_nonzero": "an exit code that nothing explains",
    "other": "an error without a class",
}


def _causes(rows: list[Row]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for row in rows:
        class_ = row["error_class"]
        kinds[_CLASS_NAMES.get(class_) or class_.replace("_", " ")] += row["failed"]
    return kinds


def _error(rows: list[Row]) -> str:
    kinds = _causes(rows)
    return f"“{safe_name(kinds.most_common(1)[0][0])}”" if kinds else "errors"


def _mainly(rows: list[Row]) -> str:
    """Return the most frequent cause: `mostly` only for more than half of the failed calls."""
    kinds = _causes(rows)
    most = max(kinds.values(), default=0) / (sum(kinds.values()) or 1)
    return f"{'mostly' if most > 0.5 else 'most often'} {_error(rows)}"


def _mended(rows: list[Row]) -> str:
    failed = sum(row["failed"] for row in rows)
    waited = [row["minutes"] for row in rows if row["minutes"] is not None]
    if not failed:
        return ""
    mended = f"; {formatted(sum(row['mended'] for row in rows) / failed, 'share')} of it works later in the session"
    return mended + (f", after {formatted(60 * median(waited), 'seconds')} in the median session" if waited else "")


_TOOL = (
    "CASE WHEN class = 'test' OR shell_kind IN ('test', 'build') THEN coalesce(shell_kind, class)"
    f" WHEN class = 'shell' THEN {PROGRAM} WHEN class IN ('mcp', 'web', 'other') THEN name ELSE class END"
)
"""Name of the action: test or build, whatever runs it; the program of a shell call; a server's or search's tool by its
name; else the class of the tool, which each agent calls differently."""
FAILURES_FINDING = Question(
    name="failures",
    question="What fails most, and is it mended?",
    queries={**_SQL["failures"], "sessions": SESSIONS},
    function=failures,
    sliced=frozenset({"calls"}),
)


# -- Changes that were not tested


def unchecked_edits(inputs: Inputs) -> list[Answer]:
    rows = list(inputs.many["changed"])
    unchecked = {row["session_id"] for row in rows if row["checked"] is None or row["checked"] < row["edited"]}
    never = {row["session_id"] for row in rows if row["checked"] is None}
    parts = [(row["session_id"], float(row["session_id"] in unchecked), 1.0) for row in rows]
    groups = contrasts(parts, inputs.rows["sessions"])
    return [_unchecked_answer(contrast, unchecked, never, len(rows)) for contrast in groups]


def _unchecked_answer(contrast: Contrast, unchecked: set[str], never: set[str], whole: int) -> Answer:
    of = contrast.in_group & unchecked
    rest = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"unchecked.{contrast.key}", contrast.value),
        about="unchecked",
        sentence=f"{formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f} sessions {contrast.where} that"
        f" changed code ended with the last change untested ({len(of & never):,} never ran a test or build), against"
        f" {rest} in {contrast.matched}.",
        **contrast.more(whole, "sessions", whole),
        cause=with_source_lines(
            f"SELECT * FROM ({_SQL['unchecked_rows']['last_edit']}) WHERE {sessions_sql(of) if of else 'false'}"
        ),
        do=f"Say in the instructions which command checks the work {contrast.where}.",
        caveat="Goes with it, and need not be because of it. A check by a program that is not known as a test or"
        f" build, or by the person, is not seen; {contrast.group.note}.",
        by_session=dict.fromkeys(of, 1.0),
    )


UNCHECKED_FINDING = Question(
    name="unchecked",
    question="Is it checked before it is called done?",
    queries={**_SQL["unchecked"], "sessions": SESSIONS},
    function=unchecked_edits,
    sliced=frozenset({"changed"}),
)


# -- Hotspots

HOTSPOT_CHANCE = 0.25
"""A file that more than a quarter of a repository's sessions change is surely one that everything goes through."""
HOTSPOT_SHARE = 0.5
"""Share of sessions from which a file is reported."""


def unfinished(inputs: Inputs) -> list[Answer]:
    places = place_by_session(inputs.rows["sessions"])
    by_place: dict[str, set[str]] = {}
    files: dict[str, dict[str, set[str]]] = {}
    for row in inputs.many["edits"]:
        place = places.get(row["session_id"])
        if place is not None:
            by_place.setdefault(place, set()).add(row["session_id"])
            files.setdefault(place, {}).setdefault(row["path"], set()).add(row["session_id"])
    whole = sum(len(ids) for ids in by_place.values())
    return [
        _unfinished_answer(place, files[place], everyone, whole)
        for place, everyone in sorted(by_place.items())
        if len(everyone) >= FEWEST_CLUSTERS
    ]


def _unfinished_answer(place: str, files: dict[str, set[str]], everyone: set[str], whole: int) -> Answer:
    """The file of a place that most sessions change. It was chosen among all: its p counts as often as there are."""
    path, ids = min(files.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    n, part = len(everyone), len(ids) / len(everyone)
    # The probability that so many of n sessions change a file that `HOTSPOT_CHANCE` of them do.
    k = len(ids)
    # By logarithms: from some thousand sessions on the number of ways to choose them is no float.
    ways = lgamma(n + 1)
    return Answer(
        id=finding_id("unfinished", f"{place} {path}"),
        sentence=f"{safe_name(path)} was changed in {len(ids):,} of the {n:,} sessions in {safe_name(place)} that"
        f" changed anything ({formatted(part, 'share')}): it is never finished.",
        size=len(ids),
        unit="sessions",
        share=len(ids) / whole if part >= HOTSPOT_SHARE else 0.0,
        interval=wilson(len(ids), n),
        p=min(
            1.0,
            len(files)
            * fsum(
                exp(
                    ways
                    - lgamma(i + 1)
                    - lgamma(n - i + 1)
                    + i * log(HOTSPOT_CHANCE)
                    + (n - i) * log1p(-HOTSPOT_CHANCE)
                )
                for i in range(k, n + 1)
            ),
        ),
        n=n,
        cause=with_source_lines(
            f"SELECT session_id, seq, path, start_line, end_line FROM edits WHERE path = {sql_text(path)} AND"
            f" {sessions_sql(ids)}"
        ),
        do=f"Look why everything goes through {safe_name(path)}: it may want to be parted.",
        caveat="A file that much is written into need not be a bad one. The sessions of one repository are drawn,"
        " and speak of no other.",
        by_session=dict.fromkeys(ids, 1.0),
    )


UNFINISHED_FINDING = Question(
    name="unfinished",
    question="Which places are never finished?",
    queries={**_SQL["unfinished"], "sessions": SESSIONS},
    function=unfinished,
    sliced=frozenset({"edits"}),
)


# -- Waiting

MUCH_TIME = 0.2
"""The share of the time from which it is surely worth a sentence; of the estimate it is `LEAST_TIME`."""
LEAST_TIME = 0.25
LEAST_HOURS = 1.0
_MOST_NAMED = 3


def waiting(inputs: Inputs) -> list[Answer]:
    places = place_by_session(inputs.rows["sessions"])
    times = {row["session_id"]: row for row in inputs.rows["times"]}
    return [*_for_person(inputs, times, places), *_for_commands(inputs, times, places)]


def _for_person(inputs: Inputs, times: dict[str, dict[str, float]], places: dict[str, str]) -> list[Answer]:
    """Waits of a minute to an hour. A longer one is no habit: nobody was there."""
    waits = [row for row in inputs.rows["waits"] if row["session_id"] in times]
    waited = {s: seconds / 3600 for s, seconds in tally(waits, "session_id", weight="waited_s").items()}
    size = fsum(waited.values())
    if size < LEAST_HOURS:
        return []
    parts = (
        (s, waited.get(s, 0.0), row["worked_s"] / 3600 + max(row["waited_s"] / 3600, waited.get(s, 0.0)))
        for s, row in times.items()
    )
    share = clustered_share_alone(parts, places)
    tools = [tool for tool, _ in ranked(tally(waits, "tool", weight="waited_s"))[:_MOST_NAMED]]
    counts = Counter(row["tool"] for row in waits)
    named = _listed([f"{safe_name(tool)} ({counts[tool]:,})" for tool in tools])
    ended = [row for row in inputs.many["ended"] if row["tool"] in tools]
    refused, of = sum(row["refused"] for row in ended), sum(row["n"] for row in ended)
    alone = fsum(row["left_alone_s"] for row in times.values())
    longer = (
        f" Longer waits ({formatted(alone, 'seconds')}) are nights and breaks, and are not counted." if alone else ""
    )
    middle = formatted(median(row["waited_s"] for row in waits), "seconds")
    return [
        Answer(
            id="waiting.for-you",
            sentence=f"Agents were blocked on your answer or approval for {formatted(3600 * size, 'seconds')}"
            f" ({formatted(share.value, 'share')} of the time from prompt to answer): {len(waits):,} waits of 1 min to"
            f" 1 h, median {middle}, most with {named}. You refused {refused:,} of {of:,} calls of these tools"
            f" ({formatted(refused / of if of else 0.0, 'share')}).",
            size=size,
            unit="hours",
            **share_fields(share, MUCH_TIME, LEAST_TIME),
            n=len(times),
            cause=with_source_lines(_SQL["waiting_rows"]["waits"], "waited_s"),
            do="Allow-list the commands you always approve, and turn on notifications.",
            caveat="Few logs say when a call was allowed. Elsewhere a call waited while it was open for longer than its"
            f" kind can run: for you, or because the machine slept.{longer} {_capitalized(share.note)}.",
            by_session=waited,
        )
    ]


def _listed(names: list[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])


def _capitalized(note: str) -> str:
    return note[:1].upper() + note[1:]


def _for_commands(inputs: Inputs, times: dict[str, dict[str, float]], places: dict[str, str]) -> list[Answer]:
    made = []
    for tool, rows in groupby(inputs.many["ran"], itemgetter("tool")):
        hours = {
            row["session_id"]: min(row["ran_s"], times[row["session_id"]]["worked_s"]) / 3600
            for row in rows
            if row["session_id"] in times
        }
        size = fsum(hours.values())
        if size < LEAST_HOURS:
            continue
        share = clustered_share_alone(
            ((s, hours.get(s, 0.0), row["worked_s"] / 3600) for s, row in times.items()), places
        )
        made.append(
            Answer(
                id=finding_id("waiting", tool),
                sentence=f"{safe_name(tool)} ran for {formatted(3600 * size, 'seconds')}, "
                f"{formatted(share.value, 'share')} of the time the agents worked, in {len(hours):,} sessions.",
                size=size,
                unit="hours",
                **share_fields(share, MUCH_TIME, LEAST_TIME),
                n=len(times),
                cause=with_source_lines(
                    "SELECT session_id, seq, epoch(until) - epoch(began) AS ran_s FROM"
                    f" ({_SQL['waiting_rows']['spans']}) WHERE tool = {sql_text(tool)}",
                    "ran_s",
                ),
                do="Have it run faster, in the background, or on less (one test, one package).",
                caveat="Calls that overlap count once. Where no record dates its start, a call counts for at most as"
                f" long as its kind can take; {share.note}.",
                by_session=hours,
            )
        )
    return made


WAITING_FINDING = Question(
    name="waiting",
    question="Where do I wait, where does it wait for me?",
    queries={**_SQL["waiting"], "sessions": SESSIONS},
    function=waiting,
    sliced=frozenset({"ran", "ended"}),
)


# -- Pushback

_PUSHBACK = "chat.pushback_type"


def _classes() -> dict[str, Figure]:
    """The classes of pushback that may be spoken of, with their figures against most things judged."""
    best = {}
    for figure in sorted(figures_of(_PUSHBACK), key=lambda figure: figure.named):
        if figure.precision is not None and figure.value != "non_pushback":
            best[figure.value] = figure
    return {value: figure for value, figure in best.items() if (figure.precision or 0) >= HALF}


def pushback(inputs: Inputs) -> list[Answer]:
    classes = _classes()
    validity = min((figure.precision or 0.0 for figure in classes.values()), default=0.0)
    recalls = "; ".join(
        f"{value.replace('_', ' ')} {share_text(figure.recall, figure.recall_interval)}"
        for value, figure in sorted(classes.items())
    )
    pushed: dict[str, float] = {}
    parts = []
    for session_id, rows in by(inputs.rows["turns"], "session_id").items():
        k = float(sum(row["n"] for row in rows if row["label"] in classes))
        if k:
            pushed[session_id] = k
        parts.append((session_id, k, float(sum(row["n"] for row in rows))))
    if len(pushed) < FEWEST_CLUSTERS:
        return []
    groups = contrasts(parts, inputs.rows["sessions"])
    # Turns that push back are few by nature: how many of them are more than elsewhere is what ranks.
    whole, turns = sum(pushed.values()), sum(n for _, _, n in parts)
    return [_pushback_answer(contrast, pushed, (validity, recalls), turns, whole) for contrast in groups]


def _pushback_answer(
    contrast: Contrast, pushed: dict[str, float], measured: tuple[float, str], turns: float, whole: float
) -> Answer:
    """`measured`: how often the patterns are right at least, and how much of each class they find."""
    validity, recalls = measured
    of = contrast.in_group & pushed.keys()
    rest = formatted(contrast.rest.value, "share")
    return Answer(
        id=finding_id(f"pushback.{contrast.key}", contrast.value),
        about="pushback",
        sentence=f"You push back at least in {formatted(contrast.group.value, 'share')} of {contrast.group.n:,.0f}"
        f" later prompts {contrast.where}, against {rest} in {contrast.matched}.",
        **contrast.more(turns, "prompts", whole),
        cause=with_source_lines(
            f"SELECT session_id, turns.seq, turns.turn, {LABEL} AS label FROM signals JOIN turns USING (session_id,"
            " turn)"
            f" WHERE signal = '{_PUSHBACK}' AND {LABEL} IN ('correction', 'failure_report', 'rejection')"
            f" AND {sessions_sql(of) if of else 'false'}"
        ),
        do=f"Read what you objected to {contrast.where}, and put it into the instructions there.",
        caveat="Goes with it, and need not be because of it. Judged by word patterns in English, which are right in"
        f" {formatted(validity, 'share')} of what they find, and find of all there is: {recalls};"
        f" {contrast.group.note}.",
        validity=validity,
        at_least=True,
        by_session={session_id: pushed[session_id] for session_id in of},
    )


PUSHBACK_FINDING = Question(
    name="pushback",
    question="Where do I push back?",
    queries={**_SQL["pushback"], "sessions": SESSIONS},
    function=pushback,
)
