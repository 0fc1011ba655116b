"""Attributions that a rewrite of history lost, given back by content (design/attribution.md#lost-in-a-rewrite)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes.git import FileChange
from agentsignals.repositories.line_states import is_telling, lines_of
from agentsignals.repositories.outcomes import AGENT
from agentsignals.repositories.witnesses import (
    WITNESSES,
    Account,
    Ground,
    Owner,
    Statement,
    Testimony,
    Witness,
    statements,
)  # fmt: skip
from agentsignals.stats.intervals import clustered
from agentsignals.store import Store, sidecars

_AUTHORED = re.compile(rb"^author [^\n]* (\d{1,12}) [+-]\d{4}$", re.MULTILINE)
_SECOND_US = 1_000_000


class Recovered(Struct, kw_only=True):
    """A line whose owner was stated of a commit that was rewritten, where it stands now."""

    commit_sha: str
    path: str
    line: int
    owner: Owner
    session_id: str
    from_commit: str
    tag: str | None = None
    """Tag by the replay."""


class _Source(Struct, frozen=True):
    """A line of a commit with an account."""

    authored_at: int
    sha: str
    statement: Statement


def recovered(accounts: Mapping[str, Account], ground: Ground) -> tuple[list[Recovered], int]:
    """The lines of commits without an account that commits with one had before them: rebased, squashed or amended. And
    how many commits have an account and no objects any more.

    A line counts where it says enough to be known again and stands in the file of the same name; of several sources the
    one made last, where all name one kind of owner. A commit that leads to another has lost nothing to it.
    """
    speaking = {sha: account.ranges for sha, account in accounts.items() if account.ranges}
    bare = [c for c in ground.commits if not c.is_merge and c.sha not in speaking]
    if not bare or not speaking:
        return [], 0
    stock: dict[tuple[str, str], list[_Source]] = defaultdict(list)
    """By path and text of a line."""
    missing = 0
    lines: list[Recovered] = []
    with closing(git.Objects(ground.git_dir)) as objects:
        for sha, by_path in speaking.items():
            header = objects.get(sha)
            authored = _AUTHORED.search(header) if header is not None else None
            if authored is None:
                missing += 1
                continue
            for path, ranges in by_path.items():
                text = _lines(objects.get(f"{sha}:{path}"))
                for number, statement in statements(ranges, range(1, len(text) + 1)).items():
                    if statement.owner in ("agent", "person") and is_telling(text[number - 1]):
                        stock[path, text[number - 1]].append(_Source(int(authored[1]) * _SECOND_US, sha, statement))
        earliest = min((s.authored_at for sources in stock.values() for s in sources), default=0)
        late = {c.sha: c for c in bare if c.committed_at >= earliest} if stock else {}
        by_sha = {c.sha: c for c in ground.commits}
        for sha, files in ground.changes(list(late)).items():
            used: Counter[tuple[str, str, str]] = Counter()
            before: set[str] | None = None
            for file in files:
                text = _lines(objects.get(file.new_oid) if file.new_oid is not None and file.added else None)
                for number in (n for first, k in file.added for n in range(first, min(first + k, len(text) + 1))):
                    place = (file.path, text[number - 1])
                    if place not in stock:
                        continue
                    before = before if before is not None else set(git.ancestors(by_sha, sha))
                    until = late[sha].committed_at
                    sources = [s for s in stock[place] if s.sha not in before and s.authored_at <= until]
                    times = Counter(s.sha for s in sources)
                    left = [s for s in sources if used[(*place, s.sha)] < times[s.sha]]
                    if len({s.statement.owner for s in left}) != 1:  # of two owners nobody knows which
                        continue
                    source = max(left, key=lambda s: (s.authored_at, s.sha))
                    used[(*place, source.sha)] += 1
                    lines.append(
                        Recovered(
                            commit_sha=sha,
                            path=file.path,
                            line=number,
                            owner=source.statement.owner,
                            session_id=source.statement.session_id,
                            from_commit=source.sha,
                        )
                    )
    return lines, missing


def _lines(data: bytes | None) -> list[str]:
    return lines_of(data.decode("utf-8", "replace")) if data is not None else []


# What others recorded of a repository's lines, beside the replay: where they agree, why they differ, what they lost
# (design/attribution.md#witnesses).

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
    """Commits that no branch leads to any more."""
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
    """Upper bound of the share on which both agree; commits are the units."""
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
    """Recovered lines whose owner the replay gives too, and those where it gives another."""
    recovered_examples: list[Recovered] = field(default_factory=list)
    commits_not_here: int = 0
    """Commits it speaks of whose objects are no longer there: nothing of them can be found again."""


class Witnessed(Struct, kw_only=True):
    repo: str
    commits: int
    commits_replayed: int
    witnesses: list[Compared]


def witnessed(store: Store, git_dir: str, name: str, folder: Path | None) -> Witnessed:
    """Every witness beside the replay of a repository, which `attribute` has written to the store."""
    commits = git.commits(git_dir)
    rows = sidecars.repository_rows(store.folder, name, "line_attribution")
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
    """Compare another tool's attribution with the replay, line by line, over the commits that both know."""
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
        by_path: dict[str, list[int]] = defaultdict(list)
        for row in replayed[sha]:
            by_path[row["path"]].append(row["line"])
        stated = {path: statements(accounts[sha].ranges.get(path, ()), numbers) for path, numbers in by_path.items()}
        order = {path: n for n, path in enumerate(by_path)}
        # The rows of one path after the other: of each reason the first examples are kept.
        for row in sorted(replayed[sha], key=lambda row: order[row["path"]]):
            statement = stated[row["path"]].get(row["line"])
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


def _group(tag: str) -> str:
    if tag in AGENT:
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
