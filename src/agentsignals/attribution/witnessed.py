"""What others recorded of a repository's lines, beside the replay: where they agree, why they differ, what they lost
(design/attribution.md#witnesses)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentsignals.attribution.recovery import Recovered, recovered
from agentsignals.attribution.witnesses import WITNESSES, Account, Ground, Statement, Testimony, Witness, statements
from agentsignals.git import commits as git
from agentsignals.git.commits import FileChange
from agentsignals.stats.estimates import clustered
from agentsignals.store import Store, repositories

AGENTS = ("agent_exact", "agent_ws", "agent_shell", "agent_other_session")
NOBODYS = {"moved": "moved", "preexisting": "there_before", "generated": "generated"}
NOT_STATED = "not_stated"
MOST_LINES = 20
"""Lines of one reason that are shown; all are counted."""


class Line(Struct, kw_only=True):
    """A line on which a witness and the replay differ."""

    commit_sha: str
    path: str
    line: int
    tag: str
    owner: str
    """The witness's; `not_stated` where it says nothing."""
    reason: str


class Compared(Struct, kw_only=True):
    """One witness beside the replay. Lines: those that commits added, blank ones left out."""

    witness: str
    describes: str
    records: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    """Accounts by the version of the program that wrote them."""
    problems: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    """Commits it speaks of."""
    commits_gone: int = 0
    """Of those, the ones that no branch leads to any more."""
    commits_carried: int = 0
    commits_both: int = 0
    """Commits that it and the replay speak of."""
    lines: int = 0
    """Added lines of those."""
    stated: dict[str, int] = field(default_factory=dict)
    """Lines it speaks of, in all commits, by owner."""
    owners: dict[str, dict[str, int]] = field(default_factory=dict)
    """Lines of `commits_both` by what the replay says (`agent`, `person`, `nobody`, `unknown`), and by what it says."""
    compared: int = 0
    """Lines that both give to somebody."""
    same: int = 0
    share: float | None = None
    low: float | None = None
    high: float | None = None
    """Of the share of them on which both agree; commits are the units."""
    sessions_same: int = 0
    sessions_other: int = 0
    """Lines that both give to an agent, by whether to the same session, where the witness names one of the store's:
    others have ids of their own, and two kinds of ids are no contradiction."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Lines on which they differ, by the most likely cause (design/attribution.md#why-witnesses-differ)."""
    examples: list[Line] = field(default_factory=list)
    recovered: int = 0
    """Lines of commits it does not speak of, whose owner it stated before they were rewritten."""
    recovered_commits: int = 0
    recovered_same: int = 0
    recovered_other: int = 0
    """Of the recovered lines, those whose owner the replay gives too, and those where it gives another."""
    recovered_examples: list[Recovered] = field(default_factory=list)
    commits_not_here: int = 0
    """Commits it speaks of whose objects are no longer there: nothing of them can be found again."""


class Witnessed(Struct, kw_only=True):
    """All witnesses of a repository."""

    repo: str
    commits: int
    commits_replayed: int
    witnesses: list[Compared]


def witnessed(store: Store, git_dir: str, name: str, folder: Path | None) -> Witnessed:
    """Every witness beside the replay of a repository, which `attribute` has written to the store."""
    commits = git.commits(git_dir)
    rows = repositories.rows(store.folder, name, "line_attribution")
    replayed: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if not row["is_blank"]:
            replayed[row["commit_sha"]].append(row)
    asked: dict[str, list[FileChange]] = {}

    def changes(shas: Iterable[str]) -> dict[str, list[FileChange]]:
        wanted = list(shas)
        asked.update(git.changes(git_dir, [sha for sha in wanted if sha not in asked]))
        return {sha: asked[sha] for sha in wanted if sha in asked}

    ground = Ground(git_dir=git_dir, folder=folder, commits=commits, changes=changes)
    compared = []
    for witness in WITNESSES.all().values():
        testimony = witness.testimony(ground)
        if testimony.records or testimony.problems:
            compared.append(_compared(witness, testimony, ground, replayed, set(store.manifest.sessions)))
    return Witnessed(repo=name, commits=len(commits), commits_replayed=len(replayed), witnesses=compared)


def _compared(
    witness: Witness,
    testimony: Testimony,
    ground: Ground,
    replayed: dict[str, list[dict[str, Any]]],
    sessions: set[str],
) -> Compared:
    there = {c.sha for c in ground.commits}
    accounts = testimony.commits
    result = Compared(
        witness=witness.name,
        describes=witness.describes,
        records=testimony.records,
        versions=dict(Counter(a.version or "unknown" for a in accounts.values()).most_common()),
        problems=dict(testimony.problems.most_common()),
        commits=len(accounts),
        commits_gone=len(accounts.keys() - there),
        commits_carried=sum(a.is_carried for a in accounts.values()),
    )
    for account in accounts.values():
        for ranges in account.ranges.values():
            for part in ranges:
                result.stated[part.statement.owner] = result.stated.get(part.statement.owner, 0) + part.lines
    _beside(result, accounts, replayed, sessions)
    lines, result.commits_not_here = recovered(accounts, ground)
    tags = {(sha, row["path"], row["line"]): row["tag"] for sha, rows in replayed.items() for row in rows}
    for line in lines:
        line.tag = tags.get((line.commit_sha, line.path, line.line))
        group = _group(line.tag) if line.tag else None
        result.recovered_same += group == line.owner
        result.recovered_other += group in ("agent", "person") and group != line.owner
    result.recovered, result.recovered_commits = len(lines), len({line.commit_sha for line in lines})
    result.recovered_examples = lines[:MOST_LINES]
    return result


def _beside(
    result: Compared, accounts: dict[str, Account], replayed: dict[str, list[dict[str, Any]]], sessions: set[str]
) -> None:
    """Counts the lines of the commits that both speak of."""
    owners: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    shares = []
    for sha in sorted(accounts.keys() & replayed.keys()):
        same, compared = 0, 0
        for row, statement in _stated(accounts[sha], replayed[sha]):
            ours, theirs = _group(row["tag"]), statement.owner if statement is not None else NOT_STATED
            owners[ours][theirs] += 1
            if ours in ("agent", "person") and theirs in ("agent", "person"):
                compared += 1
                same += ours == theirs
            if (
                ours == theirs == "agent"
                and statement is not None
                and statement.session_id in sessions
                and row["session_id"]
            ):
                is_same = statement.session_id == row["session_id"]
                result.sessions_same += is_same
                result.sessions_other += not is_same
            reason = _reason(row["tag"], statement, accounts[sha], sessions)
            if reason is None:
                continue
            reasons[reason] += 1
            if reasons[reason] <= MOST_LINES:
                place = {"commit_sha": sha, "path": row["path"], "line": row["line"], "tag": row["tag"]}
                result.examples.append(Line(**place, owner=theirs, reason=reason))
        result.commits_both += 1
        shares.append((sha, float(same), float(compared)))
    result.lines = sum(sum(counts.values()) for counts in owners.values())
    result.same, result.compared = sum(int(k) for _, k, _ in shares), sum(int(n) for _, _, n in shares)
    interval = clustered(shares).interval
    if result.compared:
        result.share = result.same / result.compared
        result.low, result.high = interval if interval is not None else (None, None)
    result.owners = {group: dict(counts.most_common()) for group, counts in sorted(owners.items())}
    result.reasons = dict(reasons.most_common())


def _stated(account: Account, rows: Iterable[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], Statement | None]]:
    by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_path[row["path"]].append(row)
    for path, lines in by_path.items():
        stated = statements(account.ranges.get(path, ()), (row["line"] for row in lines))
        for row in lines:
            yield row, stated.get(row["line"])


def _group(tag: str) -> str:
    if tag in AGENTS:
        return "agent"
    return "person" if tag == "human_observed" else "nobody" if tag in NOBODYS else "unknown"


def _reason(tag: str, statement: Statement | None, account: Account, sessions: set[str]) -> str | None:
    """Why the two differ about a line; None where they don't."""
    ours = _group(tag)
    theirs = statement.owner if statement is not None else NOT_STATED
    if theirs == "agent" and statement is not None:
        is_here = statement.session_id in sessions
        unexplained = "no_edit_explains" if is_here else "transcript_not_here"
        return {"person": "appeared_between_turns", "unknown": unexplained, "nobody": NOBODYS.get(tag)}.get(ours)
    if ours != "agent" or theirs == "mixed":
        return None  # what nobody recorded contradicts nothing
    if theirs == "person":
        return "reformatted" if tag == "agent_ws" else "stated_a_persons"
    if tag == "agent_shell":
        return "written_by_a_command"
    return "lost_in_a_rewrite" if account.is_carried else "not_recorded"
