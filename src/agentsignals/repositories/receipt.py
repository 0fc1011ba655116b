"""Receipts of commits: checks that ran, later changes, failures, files left alone, cost
(design/attribution.md#receipts)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Literal

from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes.worktrees import Naming, Tree
from agentsignals.model import Session, ToolCall
from agentsignals.repositories.outcomes import AGENT, NOBODY, share_of
from agentsignals.repositories.working_trees import clocked, operations
from agentsignals.shell.commands import Check, checks, keeps_exit_code
from agentsignals.store import Store, sidecars
from agentsignals.views.usage import cost_of, is_lower_bound, unpriced_parts

MOST_LISTED = 20

Result = Literal["passed", "failed", "hidden", "unknown"]
"""End of a check. `hidden`: it ended inside a line whose own end says nothing of it (a pipe, `|| true`)."""


class Place(Struct, frozen=True):
    session_id: str
    seq: int


class CheckRun(Struct, kw_only=True):
    """A check, and the last time that it ran before the commit."""

    name: str
    kind: str
    runs: int
    result: Result
    is_part: bool
    """The last run was asked about some files or some tests alone."""
    place: Place
    command: str
    edits_after: int
    """Changes of the commits' files by the agents after that run."""
    files_after: list[str] = field(default_factory=list)


class FailedCommand(Struct, kw_only=True):
    """A command that failed, and that no later run of the same words mended."""

    command: str
    place: Place
    error_class: str | None


def checks_of(call: ToolCall) -> tuple[Check, ...]:
    """The checks that a call runs: those of its command line, or the tool itself, where it is one that runs tests."""
    if call.command:
        return checks(call.command)
    return (Check(call.name, "test", call.path is not None),) if call.class_ == "test" else ()


class Work:
    """Calls of several sessions up to a moment, in order of time."""

    def __init__(self, sessions: list[Session], tree: Tree, files: set[str], until: int) -> None:
        self.read: set[str] = set()
        self.changed: dict[str, int] = {}
        """Files that calls changed, with the last time, microseconds."""
        edits: list[tuple[int, str]] = []
        calls: list[tuple[int, str, ToolCall]] = []
        folders = {s.cwd or "" for s in sessions}
        for session in sessions:
            made = operations(session)
            looked = [c.path for c in session.tool_calls if c.class_ == "read" and c.path and c.status == "ok"]
            naming = Naming(tree, session.cwd, [p for o in made for p in (o.path, o.to) if p] + looked, folders)
            for operation in made:
                path = naming.of(operation.path)
                if path is not None and operation.at <= until:
                    self.changed[path] = max(operation.at, self.changed.get(path, 0))
                    if path in files:
                        edits.append((operation.at, path))
            for clock, call in clocked(session, by_end=True):
                if clock <= until and call.thread not in ("abandoned", "replayed"):
                    calls.append((clock, session.session_id, call))
                    path = naming.of(call.path) if call.class_ == "read" and call.path and call.status == "ok" else None
                    if path in tree.paths:
                        self.read.add(str(path))
        calls.sort(key=lambda entry: (entry[0], entry[1], entry[2].seq))
        runs: dict[str, list[tuple[int, Place, ToolCall, Check]]] = defaultdict(list)
        last: dict[str, tuple[Place, ToolCall]] = {}
        for at, session_id, call in calls:
            place = Place(session_id, call.seq)
            for check in checks_of(call) if call.status not in ("rejected", "cancelled") else ():
                runs[check.name].append((at, place, call, check))
            if call.command and call.status in ("ok", "error"):
                last[" ".join(call.command.split())] = place, call
        self.checks = [_check_run(ran, edits) for ran in runs.values()]
        self.checks.sort(key=lambda run: (run.kind != "test", run.name))
        results = {run.name: run.result for run in self.checks}
        self.failed: list[FailedCommand] = []
        for command, (place, call) in last.items():
            if call.status == "error" and call.shell_kind in ("test", "build", "run"):
                ends = {results[check.name] for check in checks(call.command or "")}
                if not ends or "failed" in ends:  # of a check that went on otherwise its own row tells
                    self.failed.append(FailedCommand(command=command[:300], place=place, error_class=call.error_class))
        del self.failed[MOST_LISTED:]


def _check_run(ran: list[tuple[int, Place, ToolCall, Check]], edits: list[tuple[int, str]]) -> CheckRun:
    """Return a check's last run, its result, and the files that were changed after it."""
    at, place, call, check = ran[-1]
    after = [path for moment, path in edits if moment > at]
    result: Result = "failed" if call.status == "error" else "unknown"
    if call.status == "ok":
        result = "passed" if keeps_exit_code(call.command or "") else "hidden"
    return CheckRun(
        name=check.name,
        kind=check.kind,
        runs=len(ran),
        result=result,
        is_part=check.is_part,
        place=place,
        command=(call.command or call.name)[:300],
        edits_after=len(after),
        files_after=sorted(set(after))[:MOST_LISTED],
    )


# A receipt for commits: whose their lines are, which checks the agents ran and what they changed after, what was
# not run, what was read and left alone, what failed and stayed so, what it cost (design/attribution.md#receipts).
#
# It says what transcripts show and never more: a check that no transcript has may have been run by hand or by CI.

MOST_OTHERS = 40
"""The last sessions of the repository's other commits: what they run is what is usual there."""
_SECOND_US = 1_000_000


class Owners(Struct, kw_only=True):
    """Added lines that are not blank, by owner."""

    agent: int = 0
    agent_by_command: int = 0
    """Agent lines that no call's text holds: a command must have written them."""
    person: int = 0
    unknown: int = 0
    nobody: int = 0
    """Moved, there before, generated: they stand in no share."""
    low: float | None = None
    high: float | None = None
    """Bounds of the agent's share of the lines that have an author; the distance between them is what is unknown."""
    files_unknown: dict[str, int] = field(default_factory=dict)


class ReceiptSession(Struct, kw_only=True):
    """A session that had a part."""

    session_id: str
    agent: str
    model: str | None
    started_at: int | None
    prompts: int
    """The person's, until the last of the commits."""
    interrupts: int
    refused: int
    cost_usd: float | None
    """Cost of the whole session; None where a call that used tokens has no price."""
    cost_at_least: bool
    """Its output was logged in mid-stream, or a part of it has no price: the true cost is higher."""
    other_commits: int
    """Other commits of the repository that the session had a part in: its cost is theirs, too."""


class Receipt(Struct, kw_only=True):
    repo: str
    commits: list[str]
    subjects: dict[str, str]
    attributed: int
    """Commits whose lines were attributed; the others have no session."""
    files: int
    added: int
    """Lines added by the attributed commits, blank ones too."""
    owners: Owners
    sessions: list[ReceiptSession]
    sessions_missing: list[str]
    cost_usd: float | None
    """Summed cost of the `sessions_priced` sessions."""
    sessions_priced: int
    cost_at_least: bool
    """The sessions cost more than that: one has no cost or a lower bound, or its transcript is not here."""
    checks: list[CheckRun]
    not_run: list[str]
    """Checks that other sessions of this repository ran, and these did not."""
    kinds_not_run: list[str]
    """`test`, `build`: kinds of which these sessions ran none."""
    failed: list[FailedCommand]
    read_not_changed: list[str]
    read_not_changed_n: int
    changed_not_committed: list[str]
    """Files that calls changed and that no commit has since, these and others."""
    changed_not_committed_n: int
    committed_not_changed: list[str]
    """Files of the commits that no call of these sessions changed: by hand, by a command, or by a session not here."""
    committed_not_changed_n: int
    weaknesses: list[dict[str, Any]] | None
    """Weaknesses that a scan found introduced; None when no scan looked at any of these commits."""
    commits_scanned: int


def receipt(store: Store, git_dir: str, name: str, shas: list[str]) -> Receipt:
    """The receipt of these commits of a repository which `attribute` has been run for."""
    wanted = set(shas)
    rows = {r["commit_sha"]: r for r in sidecars.repository_rows(store.folder, name, "commits")}
    attributed = [rows[sha] for sha in shas if sha in rows and rows[sha]["added"] is not None]
    lines = [r for r in sidecars.repository_rows(store.folder, name, "line_attribution") if r["commit_sha"] in wanted]
    named = {s for row in attributed for s in row["session_ids"]} | {r["session_id"] for r in lines if r["session_id"]}
    others = [row for row in rows.values() if row["commit_sha"] not in wanted and row["added"] is not None]
    near = sorted(others, key=lambda row: -row["committed_at"])
    elsewhere = list(dict.fromkeys(s for row in near for s in row["session_ids"] if s not in named))[:MOST_OTHERS]
    history = git.commits(git_dir)
    commits = {c.sha: c for c in history if c.sha in wanted}
    changes = dict(git.changes(git_dir, shas))
    files = {path for part in changes.values() for f in part for path in (f.path, f.old_path) if path}
    until = max((c.committed_at for c in commits.values()), default=0) + _SECOND_US - 1
    head = git.head(git_dir)
    tree = Tree(files | (git.files_at(git_dir, head) if head else set()))
    sessions = sorted(store.read(named), key=lambda s: (s.started_at or 0, s.session_id))
    work = Work(sessions, tree, files, until)
    # Changed files that a commit took in before the moment are not left over.
    changed = work.changed
    since = min(changed.values(), default=until)
    made = {c.sha: c.committed_at for c in history if since <= c.committed_at + _SECOND_US - 1 <= until}
    taken = ((f.path, made[sha]) for sha, files in git.changes(git_dir, list(made)) for f in files)
    committed = {path for path, at in taken if at + _SECOND_US - 1 >= changed.get(path, until + 1)}
    left = changed.keys() - files - committed
    unchanged = files & tree.paths - work.changed.keys() if sessions else set()
    usual = Counter(
        name
        for s in store.read(set(elsewhere))
        for name in {check.name for call in s.tool_calls for check in checks_of(call)}
    )
    parts = [
        ReceiptSession(
            session_id=s.session_id,
            agent=s.agent,
            model=s.model,
            started_at=s.started_at,
            prompts=sum(turn.is_prompt and (turn.timestamp or 0) <= until for turn in s.turns),
            interrupts=sum(e.kind == "interrupt" and (e.timestamp or 0) <= until for e in s.events),
            refused=sum(call.status == "rejected" and (call.started_at or 0) <= until for call in s.tool_calls),
            cost_usd=cost_of(s.steps),
            cost_at_least=is_lower_bound(s) or unpriced_parts(s.steps) is not None,
            other_commits=sum(s.session_id in row["session_ids"] for row in others),
        )
        for s in sessions
    ]
    missing = sorted(named - {s.session_id for s in sessions})
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    ran = [run.name for run in work.checks]
    scanned = {r["commit_sha"] for r in sidecars.repository_rows(store.folder, name, "scans")} & wanted
    written = [r for r in lines if not r["is_blank"]]
    tags = Counter(r["tag"] for r in written)
    nobody = sum(tags.pop(tag, 0) for tag in NOBODY)
    share = share_of(tags)
    agent = sum(tags[t] for t in AGENT)
    unknown = Counter(r["path"] for r in written if r["tag"] == "unknown")
    shown = ("rule", "severity", "path", "line", "commit_sha")
    weaknesses = [
        {key: row[key] for key in shown if key in row}
        for row in (sidecars.repository_rows(store.folder, name, "weaknesses") if scanned else ())
        if row["commit_sha"] in wanted and row["change"] == "introduced"
    ]
    return Receipt(
        repo=name,
        commits=shas,
        subjects={sha: commits[sha].subject for sha in shas if sha in commits},
        attributed=len(attributed),
        files=len({f.path for part in changes.values() for f in part}),
        added=sum(row["added"] for row in attributed),
        owners=Owners(
            agent=agent,
            agent_by_command=tags["agent_shell"],
            person=tags["human_observed"],
            unknown=tags["unknown"],
            nobody=nobody,
            low=share.low,
            high=share.high,
            files_unknown=dict(unknown.most_common(5)),
        ),
        sessions=parts,
        sessions_missing=missing,
        cost_usd=sum(costs) if costs else None,
        sessions_priced=len(costs),
        cost_at_least=bool(missing) or any(part.cost_usd is None or part.cost_at_least for part in parts),
        checks=work.checks,
        not_run=[check for check, _ in usual.most_common() if check not in ran][:MOST_LISTED],
        kinds_not_run=[kind for kind in ("test", "build") if kind not in {run.kind for run in work.checks}],
        failed=work.failed,
        read_not_changed=sorted(work.read - files)[:MOST_LISTED],
        read_not_changed_n=len(work.read - files),
        changed_not_committed=sorted(left)[:MOST_LISTED],
        changed_not_committed_n=len(left),
        committed_not_changed=sorted(unchanged)[:MOST_LISTED],
        committed_not_changed_n=len(unchanged),
        weaknesses=weaknesses if scanned else None,
        commits_scanned=len(scanned),
    )
