"""Report on rules: exposure, kept or broken with the line, and the effect of their introduction
(docs/rules.md#effect). Most effects cannot be told."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import fsum
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field, structs

from agentsignals.changes import git
from agentsignals.changes.git import Version
from agentsignals.changes.worktrees import Naming, Tree, plain_folder
from agentsignals.errors import SourceError
from agentsignals.formats import profiles
from agentsignals.model import Session
from agentsignals.repositories.rule_compliance import Acts, Followed, follow
from agentsignals.repositories.rules import Document, Extracted, Occasion, Rule, extract, matching, read
from agentsignals.stats.intervals import Interval, wilson
from agentsignals.stats.paired import (
    FEWEST_OF_A_SERIES,
    LevelChange,
    benjamini_hochberg,
    difference_interval,
    level_change,
)

if TYPE_CHECKING:
    from agentsignals.formats.profile import Profile

Q = 0.05
"""False discovery rate of the effects reported (Benjamini and Hochberg 1995)."""
OTHER = 0.2
"""A model, an agent or a version whose share of the sessions moved by more is named as another change."""


class Point(Struct, frozen=True, kw_only=True):
    """A session of a rule's series."""

    session_id: str
    at: int
    is_after: bool
    kept: float
    """0..1: of its occasions that can be told those at which the rule was kept; of what must never be done all or
    none."""
    agent: str
    model: str | None
    agent_version: str | None


EffectVerdict = Literal["kept_more", "kept_less", "cannot_tell"]


class Effect(Struct, frozen=True, kw_only=True):
    verdict: EffectVerdict
    because: str
    change: LevelChange | None = None
    q: float | None = None
    """The p value, adjusted for the number of rules whose change was estimated."""
    meanwhile: list[str] = field(default_factory=list)
    """Other changes at about that time: one of them may be the cause."""


def effects(
    series: Sequence[Sequence[Point]], others: Sequence[Sequence[Point]], meanwhile: Sequence[Sequence[str]]
) -> list[Effect]:
    """The effect of each rule, given its series; the series of the rules that stood through both of its sides, under
    the same sides; and what else its commit changed."""
    changes = [level_change(*_sides(sorted(points, key=lambda p: (p.at, p.session_id)))) for points in series]
    estimated = [n for n, change in enumerate(changes) if change.p is not None]
    adjusted = dict(zip(estimated, benjamini_hochberg([changes[n].p or 0.0 for n in estimated]), strict=True))
    made = []
    for n, (points, change) in enumerate(zip(series, changes, strict=True)):
        verdict, because = _judged(change, adjusted.get(n), others[n])
        moved = list(meanwhile[n])
        before, after = ([p for p in points if p.is_after is side] for side in (False, True))
        # Agents, models and versions whose share of the sessions is another after.
        for what in ("agent", "model", "agent_version") if before and after else ():
            was, now = (Counter(getattr(p, what) or "not logged" for p in side) for side in (before, after))
            for name in sorted(was | now):
                shares = was[name] / len(before), now[name] / len(after)
                if abs(shares[0] - shares[1]) > OTHER:
                    words = f"{shares[0]:.0%} of the sessions before, {shares[1]:.0%} after"
                    moved.append(f"{what.replace('_', ' ')} {name}: {words}")
        made.append(Effect(verdict=verdict, because=because, change=change, q=adjusted.get(n), meanwhile=moved))
    return made


def _sides(points: Sequence[Point]) -> list[list[float]]:
    return [[p.kept for p in points if p.is_after is side] for side in (False, True)]


def _judged(change: LevelChange, q: float | None, others: Sequence[Point]) -> tuple[EffectVerdict, str]:
    """Tell whether a rule was kept more or less after it was written, or why that cannot be told."""
    if change.n_before < FEWEST_OF_A_SERIES or change.n_after < FEWEST_OF_A_SERIES:
        side, n = ("before", change.n_before) if change.n_before < FEWEST_OF_A_SERIES else ("after", change.n_after)
        return "cannot_tell", f"{n} sessions with an occasion {side} it: {FEWEST_OF_A_SERIES} are needed on either side"
    plain, beside = change.difference, change.level_interval
    if plain is None or beside is None or q is None:
        return "cannot_tell", "nothing can be estimated"
    if _holds_zero(plain):
        return "cannot_tell", "the difference may be chance"
    if _holds_zero(beside):
        return "cannot_tell", "beside the trend and what neighbouring sessions share, the change may be chance"
    if (plain[0] > 0) != (beside[0] > 0):
        return "cannot_tell", "the trend and the change point opposite ways"
    if q > Q:
        return "cannot_tell", "among so many rules the change may be chance"
    before, after = _sides(others)
    if min(len(before), len(after)) >= FEWEST_OF_A_SERIES:
        ends = wilson(fsum(after), len(after)), wilson(fsum(before), len(before))
        if ends[0] is not None and ends[1] is not None:
            moved = difference_interval(fsum(after) / len(after), ends[0], fsum(before) / len(before), ends[1])
            if not _holds_zero(moved) and (moved[0] > 0) == (plain[0] > 0):
                return "cannot_tell", "rules that did not change were kept otherwise, too"
    return "kept_more" if plain[0] > 0 else "kept_less", "more than the trend before it and chance explain"


def _holds_zero(interval: Interval) -> bool:
    return interval[0] <= 0 <= interval[1]


# What became of each rule: exposure, kept or broken with the line, and what its introduction changed.


class SessionRule(Struct, kw_only=True):
    session_id: str
    agent: str
    agent_version: str | None
    model: str | None
    started_at: int | None
    exposure: str
    exposed_by: str
    """Why that is thought."""
    verdict: str
    """`kept`, `broken`, `cannot_tell`, `no_occasion`: of what was done, in force or not."""
    because: str
    kept: int
    broken: int
    untold: int
    marks: list[Occasion]


class RuleRow(Struct, kw_only=True):
    """A rule, and what became of it."""

    id: str
    """File, and what stays the same when the rule is put differently."""
    file: str
    line: int
    text: str
    kind: str
    when: str
    commands: list[str]
    instead_of: list[str]
    paths: list[str]
    branches: list[str]
    condition: str
    place: str | None
    """Where its sessions lie, of a rule that only traces show."""
    since: str | None
    since_at: int | None
    until: str | None
    until_at: int | None
    exposed: int
    kept: int
    """Sessions in which it was in force and always kept where that can be judged."""
    broken: int
    """Sessions in which it was in force and broken."""
    occasions_kept: int
    occasions_broken: int
    """Over all sessions in which it was in force."""
    no_occasion: int
    cannot_tell: dict[str, int]
    """Sessions of which nobody can tell, by why: whether it was in force, or what was done."""
    not_exposed: dict[str, int]
    """Sessions in which it was not in force, by why."""
    share: float | None
    low: float | None
    high: float | None
    effect: Effect
    sessions: list[SessionRule] = field(default_factory=list)


class RulesReport(Struct, kw_only=True):
    """The mechanical rules of a repository, or of what traces show."""

    repo: str | None
    sessions: int
    files: dict[str, dict[str, int]]
    """Each instruction file with its versions, rules, and sentences that ask something else."""
    rules: list[RuleRow]
    cautions: list[str]


class Case(Struct):
    rule: Rule
    session: Session
    exposure: Exposure
    followed: Followed

    @property
    def share_kept(self) -> float | None:
        """The share of the occasions at which the rule was kept; of what must never be done all or none, however often
        there was a chance. None where nothing can be told."""
        kept, broken = self.followed.kept, self.followed.broken
        if not kept + broken or self.followed.verdict == "cannot_tell":
            return None
        return float(not broken) if self.rule.forbids else kept / (kept + broken)

    def point(self, kept: float, is_after: bool, version: str | None) -> Point:
        return Point(
            session_id=self.session.session_id,
            at=self.session.started_at or 0,
            is_after=is_after,
            kept=kept,
            agent=self.session.agent,
            model=self.session.model,
            agent_version=version,
        )


def rules_report(
    repo: str | None, sessions: int, files: dict[str, dict[str, int]], measured: Sequence[tuple[Stated, Sequence[Case]]]
) -> RulesReport:
    series, meanwhile = [], []
    for stated, cases in measured:
        points = []
        for case in cases:
            kept, state = case.share_kept, case.exposure.state
            if kept is not None and case.session.started_at is not None and state in ("before", "exposed"):
                version = ".".join((case.session.agent_version or "").split(".")[:2]) or None
                points.append(case.point(kept, state == "exposed", version))
        series.append(points)
        first = stated.introduced
        others = [other for other, _ in measured if other is not stated] if first is not None else []
        came = sum(o.introduced is not None and first is not None and o.introduced.sha == first.sha for o in others)
        left = sum(o.withdrawn is not None and first is not None and o.withdrawn.sha == first.sha for o in others)
        counts = ((came, "came"), (left, "went"))
        meanwhile.append([f"{n} other rules {what} with the same commit" for n, what in counts if n])
    made = effects(series, [_others(n, series[n], measured) for n in range(len(measured))], meanwhile)
    rows = [_row(stated, cases, effect) for (stated, cases), effect in zip(measured, made, strict=True)]
    rows.sort(key=lambda row: (-row.broken, -row.kept, row.file, row.line))
    return RulesReport(repo=repo, sessions=sessions, files=files, rules=rows, cautions=list(_CAUTIONS))


def _others(n: int, points: Sequence[Point], measured: Sequence[tuple[Stated, Sequence[Case]]]) -> list[Point]:
    """Return how the same sessions kept other rules that they had before and after, as a comparison."""
    sides = {point.session_id: point.is_after for point in points}
    values: dict[str, list[tuple[Case, float]]] = {}
    for k, (_, cases) in enumerate(measured):
        there = {
            c.session.session_id: c for c in cases if c.exposure.state == "exposed" and c.session.session_id in sides
        }
        if k == n or not {sides[session_id] for session_id in there} >= {False, True}:
            continue
        for session_id, case in there.items():
            if (kept := case.share_kept) is not None:
                values.setdefault(session_id, []).append((case, kept))
    return [
        cases[-1][0].point(sum(kept for _, kept in cases) / len(cases), sides[session_id], None)
        for session_id, cases in values.items()
    ]


def _row(stated: Stated, cases: Sequence[Case], effect: Effect) -> RuleRow:
    """Return a rule's row: sessions exposed to it, how many kept it, its effect, and the cases."""
    exposed = [c for c in cases if c.exposure.state == "exposed"]
    by = Counter(c.followed.verdict for c in exposed)
    untold = Counter(c.followed.because for c in exposed if c.followed.verdict == "cannot_tell")
    untold.update(c.exposure.why for c in cases if c.exposure.state == "unknown")
    others = Counter(c.exposure.why for c in cases if c.exposure.state not in ("exposed", "unknown"))
    n = by["kept"] + by["broken"]
    low, high = wilson(by["kept"], n) or (None, None)
    first, last = stated.introduced, stated.withdrawn
    rule: dict[str, Any] = structs.asdict(stated.rule)
    rule |= {key: list(words) for key, words in rule.items() if isinstance(words, tuple)}
    return RuleRow(
        **rule,
        id=f"{stated.path} {stated.key}",
        file=stated.path,
        place=stated.place,
        since=first.sha if first else None,
        since_at=first.arrived_at if first else None,
        until=last.sha if last else None,
        until_at=last.arrived_at if last else None,
        exposed=len(exposed),
        kept=by["kept"],
        broken=by["broken"],
        occasions_kept=sum(c.followed.kept for c in exposed),
        occasions_broken=sum(c.followed.broken for c in exposed),
        no_occasion=by["no_occasion"],
        cannot_tell=dict(untold.most_common()),
        not_exposed=dict(others.most_common()),
        share=by["kept"] / n if n else None,
        low=low,
        high=high,
        effect=effect,
        sessions=[
            SessionRule(
                session_id=case.session.session_id,
                agent=case.session.agent,
                agent_version=case.session.agent_version,
                model=case.session.model,
                started_at=case.session.started_at,
                exposure=case.exposure.state,
                exposed_by=case.exposure.why,
                **structs.asdict(case.followed),
            )
            for case in cases
        ],
    )


# The rules of a repository's history, or of what traces show, each followed through every session.

_HOOKS = (".husky/", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".githooks/", "lefthook.yaml")
_CAUTIONS = (
    "A hook that rewrites commands, a person at another terminal, and CI leave no line in a trace.",
    "A personal instruction file (in the home folder) is in no repository: what it says is not seen.",
)


def of_repository(git_dir: str, name: str, sessions: Iterable[Session], wanted: str | None = None) -> RulesReport:
    """The rules of the instruction files in a repository's history. `wanted`: of one file alone; SourceError where that
    is none of them."""
    head = git.head(git_dir)
    commits = git.commits(git_dir)
    history = git.versions(git_dir, head, patterns(), commits) if head is not None else []
    files = Files(history)
    stated, others = files.stated()
    if wanted is not None and wanted not in others:
        listed = ", ".join(sorted(others)) or "none"
        raise SourceError(f"{name} has no instruction file {wanted} in its history.", f"It has: {listed}.")
    stated = [s for s in stated if wanted is None or s.path == wanted]
    paths = git.files_at(git_dir, head) if head is not None else set()
    tree = Tree(paths | {version.path for version in history})
    has_hooks = any(path.startswith(_HOOKS) for path in paths)
    cases: list[list[Case]] = [[] for _ in stated]
    n = 0
    for session in sessions:
        n += 1
        slim, shown = _slim(session), shown_in(session)
        edited = [edit.path for edit in session.edits]
        touched = [*edited, *(c.path for c in session.tool_calls if c.path and c.class_ in ("read", "edit"))]
        naming = Naming(tree, session.cwd, touched)
        seen, changed = (frozenset(filter(None, map(naming.of, set(paths)))) for paths in (touched, edited))
        where = Where(naming.folder, seen, changed, plain_folder(session.cwd))
        acts: dict[str, Acts] = {}
        for k, rule in enumerate(stated):
            if rule.folder not in acts:
                acts[rule.folder] = Acts(session, partial(naming.below, rule.folder))
            exposure = files.exposure(rule, session, where, shown)
            cases[k].append(Case(rule.rule, slim, exposure, follow(rule.rule, acts[rule.folder], has_hooks=has_hooks)))
    counted = {
        path: {
            "versions": sum(v.path == path for v in history),
            "rules": sum(s.path == path for s in stated),
            "not_mechanical": rest,
        }
        for path, rest in others.items()
        if wanted in (None, path)
    }
    return rules_report(name, n, counted, list(zip(stated, cases, strict=True)))


def of_traces(read: Callable[[set[str]], Iterable[Session]], places: Mapping[str, str | None]) -> RulesReport:
    """The rules of the instruction files that traces themselves show. `read` gives the sessions of these ids, one after
    the other, and is asked twice; `places`: where each lies. Rules of one place are no others'."""
    lying = {session_id: place for session_id, place in places.items() if place is not None}
    shown = {session.session_id: (session.started_at or 0, shown_in(session)) for session in read(set(lying))}
    stated: dict[tuple[str, str, str], Stated] = {}
    first: dict[tuple[str, str, str], int] = {}
    files: dict[str, dict[str, int]] = {}
    for session_id, (at, texts) in sorted(shown.items(), key=lambda item: item[1][0]):
        place = lying[session_id]
        for text in texts:
            counts = files.setdefault(f"{place}: {text.name}", {"versions": 0, "rules": 0, "not_mechanical": 0})
            counts["versions"] += text.is_whole
            counts["not_mechanical"] = max(counts["not_mechanical"], text.others)
            for key, rule in text.keys.items():
                name = (place, text.name, key)
                counts["rules"] += name not in stated
                stated.setdefault(name, Stated(path=text.name, key=key, rule=rule, place=place)).rule = rule
                first.setdefault(name, at)
    ruled = {place for place, _, _ in stated}
    cases: dict[tuple[str, str, str], list[Case]] = {name: [] for name in stated}
    for session in read({session_id for session_id in shown if lying[session_id] in ruled}):
        slim, texts = _slim(session), shown[session.session_id][1]
        acts = Acts(session, lambda path: None if path[:1] in ("/", "~") or path.startswith("../") else path)
        for name, of in stated.items():
            if name[0] == lying[session.session_id]:
                cases[name].append(Case(of.rule, slim, _by_trace(of, slim, texts, first[name]), follow(of.rule, acts)))
    return rules_report(None, len(shown), files, [(of, cases[name]) for name, of in stated.items()])


def _by_trace(stated: Stated, session: Session, shown: list[Shown], first: int) -> Exposure:
    texts = [text for text in shown if text.name == stated.path]
    text = next((text for text in texts if stated.key in text.keys), None)
    if text is not None:
        return Exposure("exposed", f"the trace holds the text of {stated.path}", text.seq)
    if any(text.is_whole for text in texts):
        state: State = "before" if (session.started_at or 0) < first else "withdrawn"
        return Exposure(state, f"the text of {stated.path} in the trace has no such rule")
    return Exposure("unknown", f"the trace does not hold the text of {stated.path}: name the repository")


def _slim(session: Session) -> Session:
    return structs.replace(
        session, turns=[], steps=[], events=[], tool_calls=[], edits=[], labels=[], checkpoints=[], attempt=None
    )


Level = Literal["yes", "perhaps", "no", "unknown"]
State = Literal["exposed", "before", "withdrawn", "elsewhere", "unknown"]
"""In force; not yet; no longer; not for this agent or this folder; nobody can tell."""


class Exposure(Struct, frozen=True):
    """A rule's exposure in a session, with the reason."""

    state: State
    why: str
    seq: int | None = None


class Presence(Struct, frozen=True):
    """One version of a file, as far as one rule goes."""

    authored_at: int
    arrived_at: int
    sha: str
    rule: Rule | None


class Stated(Struct, kw_only=True):
    """A rule of a file over all the file's versions."""

    path: str
    key: str
    rule: Rule
    """As the last version that has it states it."""
    history: list[Presence] = field(default_factory=list)
    """Oldest first; empty of one that only traces show."""
    globs: tuple[str, ...] = ()
    is_optional: bool = False
    place: str | None = None
    """Where its sessions lie, of one that only traces show."""

    @property
    def folder(self) -> str:
        """The folder it holds for, with a slash behind; empty for the repository's root. Of a file that an agent keeps
        in a folder of its own (`.cursor/rules`), the folder around that."""
        parts = posixpath.dirname(self.path).split("/")
        end = next((n for n, part in enumerate(parts) if part in _own_folders()), len(parts))
        folder = "/".join(parts[:end])
        return f"{folder}/" if folder else ""

    @property
    def introduced(self) -> Presence | None:
        return next((version for version in self.history if version.rule is not None), None)

    @property
    def withdrawn(self) -> Presence | None:
        """The version that took it out for good."""
        last = next((n for n, v in reversed(list(enumerate(self.history))) if v.rule is not None), -1)
        return self.history[last + 1] if 0 <= last < len(self.history) - 1 else None


class Shown(Struct, frozen=True):
    """The text of an instruction file in a trace."""

    name: str
    seq: int
    keys: dict[str, Rule]
    others: int
    is_whole: bool
    """All of what the agent was given stands there."""


@cache
def _own_folders() -> frozenset[str]:
    return frozenset(pattern.split("/")[0] for pattern in patterns() if "/" in pattern)


@cache
def _asked(text: str) -> tuple[Document, Extracted]:
    document = read(text)
    return document, extract(document)


def shown_in(session: Session) -> list[Shown]:
    """The instruction files whose text a session's trace holds: logged as given, or read by the agent."""
    made = []

    def show(name: str, seq: int, text: str, is_whole: bool) -> None:
        extracted = _asked(text)[1]
        made.append(Shown(name, seq, {rule.key: rule for rule in extracted.rules}, extracted.others, is_whole))

    for name, pattern in {pair for profile in _profiles(session.agent) for pair in profile.instructions_logged}:
        for event in session.events:
            match = re.match(pattern, (event.text or "").lstrip(), re.DOTALL) if event.kind == "meta" else None
            if match:
                show(name, event.seq, match["text"], True)
    names = set(map(posixpath.basename, patterns()))
    for call in session.tool_calls:
        path = call.path or ""
        if call.class_ == "read" and call.result_seq is not None and posixpath.basename(path) in names:
            text = session.events[call.result_seq].text or ""
            show(path, call.seq, re.sub(r"(?m)^\s*\d+[→\t|:] ?", "", text), False)
    return sorted(made, key=lambda shown: shown.seq)


@cache
def _profiles(agent: str) -> tuple[Profile, ...]:
    return tuple(p for p in profiles() if agent in (p.agent, *p.aliases))


@cache
def patterns() -> tuple[str, ...]:
    """Every pattern of an instruction file that any agent reads."""
    return tuple(sorted({p for of in profiles() for p in (*of.instructions, *of.instructions_perhaps)}))


def reads(agent: str, path: str, taken_in_by: Iterable[tuple[str, bool]] = ()) -> Level:
    """Return how surely an agent reads an instruction file, itself or through a file that includes it
    (`taken_in_by`: that file, and whether it is a link)."""
    of_agent = _profiles(agent)
    if not any(p.instructions or p.instructions_perhaps for p in of_agent):
        return "unknown"

    def level(path: str) -> Level:
        answers: tuple[tuple[str, Level], ...] = (("instructions", "yes"), ("instructions_perhaps", "perhaps"))
        for name, answer in answers:
            named = (pattern for profile in of_agent for pattern in getattr(profile, name))
            if any(matching((f"**/{pattern}",), path) == "yes" for pattern in named):
                return answer
        return "no"

    levels = {level(path)}
    for other, is_link in taken_in_by:
        is_followed = is_link or any(p.expands_imports for p in of_agent)
        # A model may open what it is pointed to.
        levels.add("perhaps" if level(other) == "yes" and not is_followed else level(other))
    return "yes" if "yes" in levels else "perhaps" if "perhaps" in levels else "no"


class Files:
    """The instruction files of a repository over time."""

    def __init__(self, versions: list[Version]) -> None:
        self._by_path: dict[str, list[Version]] = {}
        for version in versions:
            self._by_path.setdefault(version.path, []).append(version)

    def stated(self) -> tuple[list[Stated], dict[str, int]]:
        """The rules, and of each file how many sentences of its last version are no mechanical rule."""
        made: list[Stated] = []
        others: dict[str, int] = {}
        for path, history in sorted(self._by_path.items()):
            rules: dict[str, Stated] = {}
            parts = [_asked(v.text) if v.text is not None and not v.is_link else None for v in history]
            for document, extracted in filter(None, parts):
                for rule in extracted.rules:
                    stated = rules.setdefault(rule.key, Stated(path=path, key=rule.key, rule=rule))
                    stated.rule, stated.globs, stated.is_optional = rule, document.globs, document.is_optional
            for stated in rules.values():
                for version, part in zip(history, parts, strict=True):
                    has = next((r for r in part[1].rules if r.key == stated.key), None) if part else None
                    stated.history.append(Presence(version.authored_at, version.arrived_at, version.sha, has))
            made += rules.values()
            others[path] = parts[-1][1].others if parts[-1] else 0
        return made, others

    def taken_in_by(self, path: str, at: int) -> Iterator[tuple[str, bool]]:
        """The files that at a moment take this one in: by an import on a line, or as links to it (True)."""
        for other, history in self._by_path.items():
            version = next((v for v in reversed(history) if v.arrived_at <= at), None)
            if version is None or version.text is None or other == path:
                continue
            names = (version.text.strip(),) if version.is_link else _asked(version.text)[0].imports
            if any(posixpath.normpath(posixpath.join(posixpath.dirname(other), name)) == path for name in names):
                yield other, version.is_link

    def exposure(self, stated: Stated, session: Session, where: Where, shown: list[Shown]) -> Exposure:
        """Return whether a rule of the history was in force in a session."""
        name = posixpath.basename(stated.path)
        logged = [s for s in shown if s.is_whole and s.name == name]
        if logged:
            if stated.key in logged[0].keys:
                return Exposure("exposed", f"the trace holds the text of {name}", logged[0].seq)
            if not stated.folder:
                first = stated.introduced
                is_before = first is not None and (session.started_at or 0) < first.arrived_at
                return Exposure(
                    "before" if is_before else "withdrawn",
                    f"the text of {name} in the trace has no such rule",
                    logged[0].seq,
                )
        at = session.started_at
        if at is None:
            return Exposure("unknown", "the session has no time")
        level = reads(session.agent, stated.path, self.taken_in_by(stated.path, at))
        if level == "unknown":
            return Exposure("unknown", f"it is not known which files {session.agent} reads")
        if level == "no":
            return Exposure("elsewhere", f"{session.agent} does not read {name}")
        scope = where.reached(stated)
        if scope == "no":
            return Exposure("elsewhere", "another folder's rule")
        present = _present(stated, at, session.ended_at or at, stated.path in where.edited)
        if present.state != "exposed":
            return present
        why = ""
        if level == "perhaps":
            why = f"{session.agent} reads {name} in some versions or settings, or if it follows a mention"
        elif scope == "perhaps":
            why = "it worked in the folder: whether the folder's rules were loaded is not in the trace"
        elif stated.is_optional:
            why = "the file's head leaves it to the agent whether it is read"
        return Exposure("unknown", why) if why else present


class Where(Struct, frozen=True):
    """Folders a session worked in, relative to the repository."""

    folder: str
    """Its working folder, with a slash behind; empty for the root."""
    touched: frozenset[str]
    edited: frozenset[str]
    cwd: str
    """The working folder as the trace names it."""

    def reached(self, stated: Stated) -> Literal["yes", "perhaps", "no"]:
        """Return whether the session worked in the rule's folder and on its files."""
        inside = [path for path in self.touched if path.startswith(stated.folder)]
        if stated.globs:
            return "yes" if any(matching(stated.globs, path[len(stated.folder) :]) for path in inside) else "no"
        if not stated.folder or self.folder.startswith(stated.folder):
            return "yes"
        return "perhaps" if inside or f"{self.cwd}/".endswith(f"/{stated.folder}") else "no"


def _present(stated: Stated, at: int, until: int, is_changed: bool) -> Exposure:
    """Return whether the file held the rule when the session began and until it ended."""
    history = stated.history
    now = next((v for v in reversed(history) if v.arrived_at <= at), None)
    has = now is not None and now.rule is not None
    if any((v.rule is not None) != has for v in history if v.authored_at <= at < v.arrived_at):
        return Exposure("unknown", "the file's change was written, and not yet on the main line")
    if any((v.rule is not None) != has for v in history if at < v.arrived_at <= until):
        return Exposure("unknown", "the file's change came while the session ran")
    following = next((v for v in history if v.arrived_at > at), None)
    if is_changed and following is not None and (following.rule is not None) != has:
        return Exposure("unknown", "the session changed the file itself")
    if has and now is not None:
        since = now  # the commit from which on the rule stood without a break
        for version in reversed(history[: history.index(now) + 1]):
            if version.rule is None:
                break
            since = version
        return Exposure("exposed", f"{stated.path} has it since {since.sha[:10]}")
    first = stated.introduced
    if first is not None and at < first.arrived_at:
        return Exposure("before", f"{stated.path} has it since {first.sha[:10]}, later than the session")
    return Exposure("withdrawn", f"{stated.path} has it no longer")
