"""What is shown first of a store: its findings in order (design/findings.md), and its summary.

A finding's question returns candidate answers. All of them count for the false discovery rate, also those too small to
be shown. The summary has the span, sessions or attempts, cost with its trend, failed calls, resolved by candidate, and
the first findings: the terminal, the page, the report and JSON documents show this one object.
"""

from __future__ import annotations

import hashlib
import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, pairwise
from math import ceil, erfc, fsum, sqrt
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from agentsignals.questions.charts import buckets_of
from agentsignals.questions.estimates import ClusteredShare, ruled, share_of_kinds, top_sessions
from agentsignals.questions.question import Inputs, Question, Rows, cut, formatted, interval, times
from agentsignals.stats.intervals import FEWEST_CLUSTERS, Interval, Z
from agentsignals.stats.paired import benjamini_hochberg, difference_interval

HALF_SURE = 10
"""Sessions that give a confidence of one half (this project's choice: a share of ten is known to a third)."""


class Bounds(Struct, frozen=True, kw_only=True):
    """Thresholds below which nothing is shown."""

    effect: float = 0.05
    """Smallest share of the total."""
    sureness: float = 1 / 3
    false_discoveries: float = 0.05
    """Expected share of wrong answers among those shown, over all candidates."""


class Answer(Struct, frozen=True, kw_only=True):
    """A sentence that a person can act on, with its evidence."""

    id: str
    """Its question's name (`-` for `_`), a dot, and letters, digits, dots and hyphens only: safe in a shell command."""
    sentence: str
    size: float
    unit: str
    share: float
    """Share of the total (dollars of the bill, sessions of the sessions) that would be saved."""
    n: int
    """Number of sessions behind it."""
    cause: str
    """SQL for its evidence: rows of session_id, seq and more, largest part first."""
    part: str = ""
    """Column of the evidence with each row's part of `size`, as it was measured (dollars, seconds); the rows add up to
    the claim. Empty if each row counts 1."""
    caveat: str
    """Circumstances that could make it wrong."""
    about: str = ""
    """Answers about the same thing share this; only the largest is shown."""
    details: str = ""
    """Further sentences, which a list of findings leaves out."""
    do: str = ""
    """Advice, empty if there is none."""
    saves: float | None = None
    """Most that the advice could save, in `unit` of `size`; None if that was not counted."""
    interval: Interval | None = None
    """95 % interval of the share in `sentence`, or of the difference of two; None where that is a ratio."""
    p: float | None = None
    """One-sided p value. None for a plain count over the whole store, and where the question gives q."""
    validity: float = 1.0
    """Measured precision of the underlying signal; 1 for recorded facts."""
    at_least: bool = False
    """True if the figure is a lower bound."""
    sessions: tuple[str, ...] = ()
    """The sessions behind it, largest part first."""
    by_session: dict[str, float] = {}
    """Part of each session in what the sentence counts, in `unit`, largest first; once ranked the five largest."""
    of_data: bool = False
    """True if it is about the data read, not about the work; ranked after all others."""
    question: str = ""
    again: str = ""
    """The command that recomputes it, with its evidence."""
    q: float | None = None
    """p adjusted over all candidates; or by its question over its own, which then has no p."""
    sureness: float = 0.0
    """Confidence, 0 to 1, from `validity` and `n` (design/findings.md#from-candidates-to-the-list)."""

    def __post_init__(self) -> None:
        force_setattr(self, "size", float(self.size))  # a count, too: it is printed alike once it was kept as JSON
        force_setattr(self, "sureness", self.validity * self.n / (self.n + HALF_SURE))


class Candidate(Answer, frozen=True, kw_only=True):
    """An answer whose evidence is made if it is told."""

    cause: str = ""
    told: Callable[[], dict[str, Any]]
    """Return the fields of its evidence: `cause`, `by_session`, and what else only a reader sees."""


def candidate_answers(
    question: Question, inputs: Inputs, is_told: Callable[[Answer], bool] = lambda _: True
) -> list[Answer]:
    """Return every candidate answer of a question, each with its text and the command that recomputes it. If few
    sessions make up most of a total, its caveat begins with them and the median session. `is_told`: tells which ones
    have their evidence made."""
    context = f" --context {inputs.context}" if inputs.context else ""
    seen: Counter[str] = Counter()
    candidates = []
    for made in question.function(inputs):
        seen[made.id] += 1
        own = made.id if seen[made.id] == 1 else f"{made.id}-{seen[made.id]}"
        again = f"agentsignals findings{context} {own}"
        named: Answer = replace(made, id=own, question=question.question, again=again)
        if isinstance(named, Candidate):
            fields = {name: getattr(named, name) for name in Answer.__struct_fields__}
            named = Answer(**fields | (named.told() if is_told(named) else {}))
        unit, saves = named.unit.removesuffix(MORE), named.saves
        if saves is None and unit in _SAVED:
            saves = named.size
        do = f"{named.do} Could save up to {amount(saves, unit)}." if named.do and saves else named.do
        named = replace(named, do=do, saves=saves)
        if (parts := named.by_session) and is_told(named):
            few = ruled(parts.items())
            lead = f"{few.sentence(partial(amount, unit=unit))} " if few else ""
            largest = top_sessions(parts.items())
            of_largest = {session_id: parts[session_id] for session_id in largest}
            named = replace(named, caveat=f"{lead}{named.caveat}", sessions=largest, by_session=of_largest)
        candidates.append(named)
    return candidates


MORE = " more than elsewhere"
"""End of the unit of an excess, whose parts are counted whole."""
_SAVED = frozenset(("hours", "calls", "failed calls", "prompts"))
"""Units of sizes that are gone where the advice works: each advice names its amount."""


def amount(value: float, unit: str) -> str:
    """Return the size of an answer in words: `$12.30`, `4.2 hours`, `3 failed calls more than elsewhere`."""
    of, more = unit.removesuffix(MORE), MORE if unit.endswith(MORE) else ""
    if of == "USD":
        return f"{formatted(value, 'usd')}{more}"
    if of == "hours":
        return f"{value:,.1f} {of}{more}" if value >= 1 else f"{formatted(3600 * value, 'seconds')}{more}"
    return f"{ceil(value):,} {of.removesuffix('s') if ceil(value) == 1 else of}{more}"


class Period(Struct, frozen=True, kw_only=True):
    """Sessions that began in one day, week or month."""

    start: str
    """Its first day."""
    sessions: int
    cost_usd: float | None
    at_least: bool
    """True if the cost is a lower bound."""
    answered: int
    """Calls of the main thread that were answered; refused and cancelled ones are neither answered nor failed."""
    failed: int


class Totals(Struct, frozen=True, kw_only=True):
    """Figures over sessions, and over time."""

    sessions: int
    first: datetime | None = None
    last: datetime | None = None
    cost_usd: float | None = None
    priced: int = 0
    """Sessions whose cost is known."""
    at_least: bool = False
    """True if the cost is a lower bound."""
    answered: int = 0
    failed: int = 0
    step: str = ""
    """Length of a period: `day`, `week` or `month`; empty if no time is recorded."""
    periods: list[Period] = []
    recent_days: int = 0
    """Days of the trend; 0 if the span is too short for one."""
    recent_usd: float | None = None
    """Cost of the last days before the last session."""
    recent_at_least: bool = False
    before_usd: float | None = None
    """Cost of as many days before these."""
    before_at_least: bool = False


class ResolvedCandidate(Struct, frozen=True, kw_only=True):
    """First attempts of one candidate at the common tasks of its group."""

    name: str
    share: float | None
    """Share of the judged attempts that is resolved. None if none was judged."""
    low: float | None
    high: float | None
    """At 95 %."""
    judged: int
    not_judged: int


class ResolvedGroup(Struct, frozen=True, kw_only=True):
    """Candidates that share tasks, data set and limits, highest share first."""

    datasets: list[str]
    tasks: int
    """Tasks of the shares."""
    candidates: list[ResolvedCandidate]
    command: str
    """The command that compares them."""
    unrecorded: int = 0
    """Attempts of the store that record neither model nor agent, which are in no group; told with the first."""


class Elsewhere(Struct, frozen=True, kw_only=True):
    """Sessions of another context in the same store."""

    context: str
    sessions: int
    command: str
    """The command for findings about them."""


class Findings(Struct, frozen=True, kw_only=True):
    """The answers shown for a store, and how many were checked."""

    answers: list[Answer]
    """Ranked."""
    sessions: int
    context: str
    bill: str
    """Total cost and its largest causes; empty if no price is known."""
    looked_at: dict[str, int]
    """Number of candidates by question."""
    bounds: Bounds
    left_out: dict[str, str] = {}
    """Questions that could not be asked, with the reason."""
    changed_files: int = 0
    """Files of the store that changed since."""
    resolved: list[ResolvedGroup] = []
    """Resolved tasks by candidate for eval runs, the group with most tasks first."""
    elsewhere: list[Elsewhere] = []
    """The store's other contexts, which these findings are not about."""
    totals: Totals = Totals(sessions=0)


def decode_findings(kept: bytes | None) -> Findings | None:
    """Decode kept findings (JSON). None if they are missing or invalid."""
    try:
        return None if kept is None else msgspec.json.decode(kept, type=Findings)
    except msgspec.DecodeError:
        return None


def fewest_sessions(bounds: Bounds) -> int:
    """Return how many sessions an answer needs to reach the confidence threshold."""
    return ceil(HALF_SURE * bounds.sureness / (1 - bounds.sureness) - 1e-9) if bounds.sureness < 1 else sys.maxsize


def too_few_sessions(sessions: int, context: str, bounds: Bounds) -> str:
    """Return why no answer about so many sessions can be confident enough; empty if one can. Candidates of eval runs
    are named however few their attempts are."""
    fewest = fewest_sessions(bounds)
    if sessions >= fewest or (context == "eval" and sessions):
        return ""
    return f"findings need at least {fewest} sessions"


def elsewhere(contexts: Mapping[str, int], context: str) -> list[Elsewhere]:
    """Return the other contexts of a store. `contexts`: its sessions by context."""
    return [
        Elsewhere(context=other, sessions=n, command=f"agentsignals findings --context {other}")
        for other, n in sorted(contexts.items())
        if other != context and n
    ]


def ranked_answers(candidates: Sequence[Answer], bounds: Bounds) -> list[Answer]:
    """Return the answers above the thresholds: those with something to do first, by share and confidence."""
    tested = [made for made in candidates if made.p is not None]
    adjusted = dict(
        zip((made.id for made in tested), benjamini_hochberg([made.p or 0.0 for made in tested]), strict=True)
    )
    sure = [
        replace(made, q=adjusted.get(made.id, made.q))
        for made in candidates
        if may_be_told(made, bounds) and adjusted.get(made.id, made.q or 0.0) <= bounds.false_discoveries
    ]
    ranked = sorted(sure, key=lambda made: (made.of_data, not made.do, -made.share * made.sureness, made.id))
    largest: dict[str, Answer] = {}
    for made in ranked:
        largest.setdefault(made.about or made.id, made)
    return list(largest.values())


def may_be_told(made: Answer, bounds: Bounds) -> bool:
    """Return whether an answer is large and sure enough, whatever the other candidates are."""
    least_q = (made.q if made.p is None else made.p) or 0.0  # adjusted, p is no smaller, but for its last digit
    return (
        made.share >= bounds.effect
        and made.sureness >= bounds.sureness
        and least_q <= bounds.false_discoveries * (1 + 1e-9)
    )


def share_fields(share: ClusteredShare, much: float) -> dict[str, Any]:
    """Return the fields of an answer whose size is a share of the total, with p against `much`."""
    return {"share": float(share.value or 0.0), "interval": share.interval, "p": p_above(share, much)}


def p_above(share: ClusteredShare, much: float) -> float:
    """Return the one-sided p value of a share being at most `much`; 1 without an interval."""
    if share.interval is None or not isinstance(share.value, float):
        return 1.0
    return _tail(share.value - much, share.value - share.interval[0])


def share_difference(share: ClusteredShare, other: ClusteredShare) -> tuple[Interval, float] | None:
    """Return the interval of a difference of shares, and its one-sided p value."""
    if share.interval is None or other.interval is None:
        return None
    value, rest = float(share.value or 0.0), float(other.value or 0.0)
    low, high = difference_interval(value, share.interval, rest, other.interval)
    return (low, high), _tail(value - rest, value - rest - low)


def _tail(gap: float, below: float) -> float:
    """Normal tail of a gap, from the distance to the low end of its 95 % interval."""
    if below <= 0:
        return 0.0 if gap > 0 else 1.0
    return 0.5 * erfc(gap * Z / below / sqrt(2))


def finding_id(name: str, value: str) -> str:
    """Build an id from our name and a value out of a trace: redacted first, then only letters and digits. Values that
    are equal once they are redacted have one id, which `candidate_answers` numbers."""
    value = _masked(value)
    plain = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
    if plain != value:
        digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:6]
        plain = f"{plain[-30:].strip('-')}-{digest}".strip("-")
    return f"{name}.{plain}"


def sql_text(value: str) -> str:
    """Quote a value out of a trace as SQL text."""
    return "'" + value.replace("'", "''") + "'"


def with_source_lines(rows: str, part: str = "") -> str:
    """Extend SQL (session_id, seq and more) with the file and line of each row, in order of contribution. `part`: the
    column with each row's part of the claim, in its unit; without one each row counts 1, and the sessions with most
    rows come first."""
    order = f"{part} DESC NULLS LAST" if part else "count(*) OVER (PARTITION BY session_id) DESC"
    return (
        f"SELECT made.*, events.line, artifacts.path AS file FROM ({rows}) AS made JOIN events USING (session_id, seq)"
        f" LEFT JOIN artifacts USING (artifact_id) ORDER BY {order}, session_id, seq"
    )


def sessions_sql(sessions: Iterable[str]) -> str:
    return f"session_id IN ({', '.join(map(sql_text, sorted(sessions)))})"


def _masked(value: str) -> str:
    from agentsignals.redaction import redacted  # noqa: PLC0415  (50 ms of patterns, which what was kept does without)

    return redacted(value)


def safe_name(value: str, most: int = 60) -> str:
    """Return a name out of a trace for a sentence: redacted, on one line. Long names keep their end."""
    line = " ".join(_masked(value).split())
    return line if len(line) <= most else f"…{line[1 - most :]}"


def safe_excerpt(value: str, most: int = 200) -> str:
    """Return text out of a trace for a sentence: redacted, on one line. Long text keeps its beginning."""
    return cut(" ".join(_masked(value).split()), most)


# -- contrasts ---------------------------------------------------------------------------------------------------------


KEYS = {"place": "in {}", "agent": "with {}", "model": "with {}"}
"""Columns that sessions are contrasted by, and how a sentence says it."""


class Cells(NamedTuple):
    """The sessions by cell: those of one place, agent and model. Contrasts need no more than sums over these."""

    of: dict[str, int]
    """The number of each session's cell."""
    facts: list[tuple[str | None, ...]]
    """By number, the values of `KEYS`."""

    def counted(self, sessions: Iterable[str], ks: Iterable[float], ns: Iterable[float]) -> dict[Kind, int]:
        """Return how many sessions of a cell have k and n, of those with an n above 0. By column, each session once."""
        held = Counter(zip(map(self.of.__getitem__, sessions), ks, ns, strict=False))  # one of them may have no end
        return {kind: alike for kind, alike in held.items() if kind[2] > 0}

    def share(self, counted: Mapping[Kind, int]) -> ClusteredShare:
        """Return the share of sum(k) in sum(n) over these sessions."""
        by_place: Counter[tuple[str | None, float, float]] = Counter()
        for (cell, k, n), sessions in counted.items():
            by_place[self.facts[cell][0], k, n] += sessions
        return share_of_kinds(by_place)

    def among(self, parts: Mapping[str, float], cells: Collection[int]) -> dict[str, float]:
        """Return the parts of the sessions in these cells."""
        return {session_id: part for session_id, part in parts.items() if self.of[session_id] in cells}


Kind = tuple[int, float, float]
"""A cell with the k and n of a session."""


def cells_of(sessions: Rows) -> Cells:
    """Return the cells of these rows of `sql.FACTS`."""
    ids, *facts = sessions.columns("session_id", *KEYS)
    numbers = {facts: number for number, facts in enumerate(dict.fromkeys(zip(*facts, strict=True)))}
    return Cells(dict(zip(ids, map(numbers.__getitem__, zip(*facts, strict=True)), strict=True)), list(numbers))


def priced(sessions: Rows) -> Rows:
    """Return the bill: the rows of `sql.FACTS` with a known cost."""
    return sessions.known("cost_usd")


LEAST_PART = 0.1
"""Smallest share of the observations on either side. Sizes are filtered before any share is known (Bourgon et al.
2010)."""


class Contrast(NamedTuple):
    """The sessions with one value against others that are otherwise similar, where there are such."""

    key: str
    value: str
    group: ClusteredShare
    rest: ClusteredShare
    excess: float
    """Excess over the others' share, as a part of the total."""
    interval: Interval
    """95 % interval of the difference."""
    p: float
    """One-sided p value."""
    matched: str
    """Description of the others."""
    n: int
    """Number of its sessions."""
    in_group: frozenset[int]
    """Its cells."""
    in_rest: frozenset[int]

    @property
    def where(self) -> str:
        return KEYS[self.key].format(safe_name(self.value))

    def more(self, observations: float, of: str, whole: float) -> dict[str, Any]:
        """Return the fields of an answer about the excess, in `of` out of `observations`, as a share of `whole`."""
        size = self.excess * observations
        return {
            "size": size,
            "unit": f"{of}{MORE}",
            "share": size / whole,
            "interval": self.interval,
            "p": self.p,
            "n": self.n,
        }


def contrasts(counted: Mapping[Kind, int], cells: Cells, keys: Iterable[str] = tuple(KEYS)) -> list[Contrast]:
    """Return a contrast for every value of these keys with enough sessions on both sides, equal groups once.

    `counted`: as `Cells.counted` has it.
    """
    kinds: defaultdict[int, dict[Kind, int]] = defaultdict(dict)
    for kind, sessions in counted.items():
        kinds[kind[0]][kind] = sessions
    sizes = {cell: (sum(of.values()), fsum(n * times for (*_, n), times in of.items())) for cell, of in kinds.items()}

    def size(of: Collection[int]) -> tuple[int, float]:
        """Return its sessions, and their observations."""
        return sum(sizes[cell][0] for cell in of), fsum(sizes[cell][1] for cell in of)

    n_sessions, whole = size(kinds)
    made: list[Contrast] = []
    seen: set[frozenset[int]] = set()
    for key in keys:
        # Others of the same agents if projects are contrasted, else of the same projects; where there are enough.
        at, other = (list(KEYS).index(name) for name in (key, "agent" if key == "place" else "place"))
        groups: defaultdict[str | None, set[int]] = defaultdict(set)
        for cell in kinds:
            groups[cells.facts[cell][at]].add(cell)
        for value, group in sorted((value, frozenset(of)) for value, of in groups.items() if value is not None):
            n, observed = size(group)
            # Others may be fewer than all that are left, and are looked for where these are enough.
            if min(n, n_sessions - n) < FEWEST_CLUSTERS or observed < LEAST_PART * whole:
                continue
            values = {cells.facts[cell][other] for cell in group}
            rest = frozenset(cell for cell in kinds.keys() - group if cells.facts[cell][other] in values)
            matched = "your other sessions " + ("with the same agents" if key == "place" else "in the same projects")
            if size(rest)[0] < FEWEST_CLUSTERS:
                rest = frozenset(kinds.keys() - group)
                matched = f"your other sessions (any {'agent' if key == 'place' else 'project'})"
            if size(rest)[0] < FEWEST_CLUSTERS or size(rest)[1] < LEAST_PART * whole or group in seen:
                continue
            seen.add(group)
            here, there = (cells.share(dict(chain(*(kinds[cell].items() for cell in of)))) for of in (group, rest))
            between = share_difference(here, there)
            if between is None:
                continue
            gap = float(here.value or 0) - float(there.value or 0)
            excess = gap * here.n / whole
            made.append(Contrast(key, value, here, there, excess, *between, matched, n, group, rest))
    return made


MOST_FINDINGS = 3
RECENT_DAYS = (7, 30)
"""Days of a trend: the longer of these that the span holds at least twice."""
NOUNS = {"product": "session", "eval": "attempt"}


Told = tuple[datetime | None, float | None, Any, int, int]
"""What `totals` is told of a session: when it began; its cost, and whether that is a lower bound; its answered calls,
of which the trace says whether they failed (the denominator of `user.tool_error_rate`), and those that failed."""


def totals(sessions: Iterable[Told]) -> Totals:
    """Return the figures of sessions."""
    ordered = sorted(sessions, key=lambda told: told[0] or datetime.min)  # those without a time come first
    columns = list(zip(*ordered, strict=True)) or [()] * 5
    undated = columns[0].count(None)
    times = columns[0][undated:]
    span = buckets_of(times)
    periods: list[Period] = []
    whole = _period("", columns)
    recent = before = _period("", [()] * 5)
    days = 0
    if span is not None:
        starts = list(span.starts())
        cuts = [undated + bisect_left(times, start) for start in (*starts, datetime.max)]
        for start, (at, end) in zip(starts, pairwise(cuts), strict=True):
            periods.append(_period(f"{start:%Y-%m-%d}", [column[at:end] for column in columns]))
        days = max((n for n in RECENT_DAYS if times[-1] - times[0] >= timedelta(days=2 * n)), default=0)
        earlier, since = (undated + bisect_right(times, times[-1] - timedelta(days=n * days)) for n in (2, 1))
        before, recent = (
            _period("", [column[part] for column in columns]) for part in (slice(earlier, since), slice(since, None))
        )
    return Totals(
        sessions=len(ordered),
        first=times[0] if times else None,
        last=times[-1] if times else None,
        cost_usd=whole.cost_usd,
        priced=len(ordered) - columns[1].count(None),
        at_least=whole.at_least,
        answered=whole.answered,
        failed=whole.failed,
        step=span.step if span else "",
        periods=periods,
        recent_days=days,
        recent_usd=recent.cost_usd,
        recent_at_least=recent.at_least,
        before_usd=before.cost_usd,
        before_at_least=before.at_least,
    )


def _period(start: str, columns: Sequence[Sequence[Any]]) -> Period:
    _, costs, bounds, answered, failed = columns
    known = [usd for usd in costs if usd is not None]
    return Period(
        start=start,
        sessions=len(costs),
        cost_usd=fsum(known) if known else None,
        at_least=any(bounds),
        answered=sum(answered),
        failed=sum(failed),
    )


class Brief(Struct, frozen=True, kw_only=True):
    """A finding in two lines: what is the case; the amount, and what to do."""

    id: str
    sentence: str
    amount: str
    do: str
    again: str
    """The command that shows it with its evidence."""

    @property
    def told_amount(self) -> str:
        """The amount, unless the sentence begins with it."""
        number = self.amount.partition(" ")[0]
        return "" if self.sentence.removeprefix("At least ").startswith(f"{number} ") else self.amount


class ContextSummary(Struct, frozen=True, kw_only=True):
    """The summary of people's sessions (`product`) or of attempts of eval runs (`eval`)."""

    context: str
    totals: Totals
    findings: list[Brief]
    more_findings: int
    """Findings that are not among these."""
    command: str
    """The command for all findings."""
    resolved: list[ResolvedGroup] = []
    """Groups of comparable candidates, the one with most tasks first."""
    no_findings: str = ""
    """Why there are none."""
    changed_files: int = 0
    """Files that changed since this was computed."""


class Summary(Struct, frozen=True, kw_only=True):
    """The summary of a store, by context, the one with most sessions first."""

    contexts: list[ContextSummary]


def summary(every: Iterable[Findings]) -> Summary:
    """Return the summary of a store from the findings of its contexts."""
    parts = [of_context(made) for made in every if made.sessions]
    return Summary(contexts=sorted(parts, key=lambda part: -part.totals.sessions))


def of_context(made: Findings, counted: Totals | None = None, most: int = MOST_FINDINGS) -> ContextSummary:
    """Return the summary of one context. `counted`: figures of some of its sessions instead of all."""
    first = made.answers[:most]
    option = f" --context {made.context}" if made.elsewhere else ""
    return ContextSummary(
        context=made.context,
        totals=counted or made.totals,
        findings=[
            Brief(id=a.id, sentence=a.sentence, amount=amount(a.size, a.unit), do=a.do, again=a.again) for a in first
        ],
        more_findings=len(made.answers) - len(first),
        command=f"agentsignals findings{option}",
        resolved=made.resolved,
        no_findings="" if first else "; ".join(made.left_out.values()) or "nothing exceeds the thresholds",
        changed_files=made.changed_files,
    )


# The summary's figures in words.


def noun(context: str, n: int) -> str:
    """Return a count with the noun of its context: `1 attempt`, `12 sessions`."""
    return times(n, NOUNS[context])


def span_text(counted: Totals) -> str:
    """Return the days of the first and last session; empty if no time is recorded."""
    if counted.first is None or counted.last is None:
        return ""
    first, last = f"{counted.first:%Y-%m-%d}", f"{counted.last:%Y-%m-%d}"
    return first if first == last else f"{first} to {last}"


def cost_text(counted: Totals) -> str:
    """Return the cost, marked where it is a lower bound."""
    return formatted(counted.cost_usd, "usd", counted.at_least)


def trend_text(counted: Totals) -> str:
    """Return the cost of the days up to the last session against as many days before; empty where the span is too
    short. Of lower bounds the change is an estimate."""
    if not counted.recent_days or counted.recent_usd is None or counted.last is None:
        return ""
    cost = formatted(counted.recent_usd, "usd", counted.recent_at_least)
    said = f"{counted.recent_days} days to {counted.last:%Y-%m-%d} {cost}"
    if not counted.before_usd:
        return said
    change = counted.recent_usd / counted.before_usd - 1
    less = f"{abs(change):.0%} {'less than' if change < 0 else 'more than'}"
    times = f"{counted.recent_usd / counted.before_usd:.1f} times as much as" if change >= 2 else less
    about = "~" if counted.recent_at_least or counted.before_at_least else ""
    return f"{said}, {about}{times} in the {counted.recent_days} days before"


def failed_text(counted: Totals) -> str:
    """Return the share of failed calls; empty where no call was answered."""
    if not counted.answered:
        return ""
    return f"{formatted(counted.failed / counted.answered, 'share')} of {times(counted.answered, 'tool call')} failed"


def head_text(part: ContextSummary) -> str:
    """Return a context's figures in one line."""
    counted = part.totals
    cost = trend = ""
    if counted.cost_usd is not None:
        priced = "" if counted.priced == counted.sessions else f" for {counted.priced:,} of them"
        cost = f"{cost_text(counted)} at API prices{priced}"
        trend = trend_text(counted)
    facts = [noun(part.context, counted.sessions), span_text(counted), cost, trend, failed_text(counted)]
    return " · ".join(fact for fact in facts if fact)


def resolved_text(groups: Sequence[ResolvedGroup], most: int | None = None) -> list[str]:
    """Return what each candidate resolved, a line each under its group; at most so many lines."""
    lines: list[str] = []
    for n, group in enumerate(groups):
        tasks = times(group.tasks, "task") if group.tasks else "no task named"
        apart = ", not comparable with the groups above" if n else ""
        lines.append(f"Resolved, {', '.join([*group.datasets[:_DATASETS], tasks])}{apart}:")
        for c in group.candidates:
            share = "–" if c.share is None else f"{c.share:.0%}"
            solved = "" if c.share is None else f"{round(c.share * c.judged):,} of {c.judged:,}"
            lacking = f", {c.not_judged:,} not judged" if c.not_judged else ""
            lines.append(f"{share:>{_SHARE}}  {interval(c.low, c.high):13}{solved:>12}  {safe_name(c.name)}{lacking}")
        if group.command and n:
            lines.append(f"         {group.command}")
    if nobody := sum(group.unrecorded for group in groups):
        lines.append(f"{'–':>{_SHARE}}  {times(nobody, 'attempt')} without a recorded model or agent: in no line above")
    if most is None or len(lines) <= most:
        return lines
    shown = lines[: most - 1]
    while shown and shown[-1].startswith("Resolved"):
        shown.pop()
    left = sum(not line.startswith("Resolved") for line in lines[len(shown) :])
    return [*shown, f"{'':{_SHARE}}  and {left:,} more: agentsignals findings --context eval"]


_SHARE, _DATASETS = 7, 3
"""Columns of a share, right-aligned; named data sets."""
