"""Attribute the lines of a repository to people and agents: replay, figures, tables, labels of sessions."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from contextlib import suppress

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes.worktrees import LABELLER, label
from agentsignals.repositories import outcomes
from agentsignals.repositories.checkpoints import Agreement, Recorded, agreement, counted, unlinked
from agentsignals.repositories.checkpoints import row as commit_row
from agentsignals.repositories.outcomes import Share, authored, mode_of, share_of
from agentsignals.repositories.replay import Chances, Replay, Replayed
from agentsignals.repositories.working_trees import Point, Repository, Worktree, opened, points, worktrees
from agentsignals.store import Store, artifact_id, sidecars
from agentsignals.store.index import code_stamp
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import CommitRow, LineRow

SURVIVAL, MODE = "code_survival", "coding_mode"


class OfSessions(Struct):
    """The labels of a repository's sessions, those without one among them."""

    sessions: set[str] = field(default_factory=set)
    by_task: dict[str, list[LabelRow]] = field(default_factory=dict)

    @property
    def modes(self) -> dict[str, int]:
        """Number of sessions by coding mode."""
        return dict(sorted(Counter(row.label.value for row in self.by_task[MODE]).items()))

    def add(self, session_id: str, task: str, value: str, number: float | None, reason: str, detail: Struct) -> None:  # noqa: PLR0913  (the columns of a label)
        self.by_task[task].append(LabelRow(session_id, label(detail, value, number, reason, task)))

    def write(self, store: Store) -> None:
        """Puts them beside those of other sessions, in the place of what these had before."""
        for task, rows in self.by_task.items():
            sidecars.replace_labels(store.folder, task, LABELLER, self.sessions, rows)


def of_sessions(
    repository: Repository, commit_points: list[Point], done: list[tuple[Worktree, Replayed]]
) -> OfSessions:
    """Label the sessions that worked in a repository from its replay: the share of their lines that reached a commit,
    and the coding mode of the lines of all commits they are linked to, whoever wrote them (SWE-chat, M2)."""
    ours = {activity.session_id for tree, _ in done for activity in tree.activities}
    labels = OfSessions(ours, {SURVIVAL: [], MODE: []})
    reason = "lines that reached a commit / lines that edits wrote (Eq 2, any later commit)"
    for session_id, survived in sorted(outcomes.by_session(done).items()):
        if (rate := survived.efficiency) is not None:
            labels.add(session_id, SURVIVAL, f"{rate:.4f}", rate, reason, survived)
    lines = {sha: added_lines for _, replayed in done for sha, added_lines in replayed.lines.items()}
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for point in commit_points:
        for session_id in point.sessions & ours:
            tags[session_id] += authored(lines.get(point.commit.sha, []))
    reason = "the whole interval [surely an agent's, not surely a person's] lies in the mode"
    for session_id, n_by_tag in sorted(tags.items()):
        share = share_of(n_by_tag)
        if share.n:
            labels.add(session_id, MODE, mode_of(share.low, share.high), share.likely, reason, share)
    labels.by_task |= outcomes.Outcomes(repository, commit_points, done).labels()
    return labels


NOTE = "attribution"
_NEAR_SHARE = 0.1
"""A recorded total so near the lines that the commit really added counts as consistent."""


class Attribution(Struct, kw_only=True):
    """Result of `attribute` for one repository."""

    repo: str
    checkpoints: int = 0
    checkpoints_linked: int = 0
    unlinked: dict[str, int] = field(default_factory=dict)
    unlinked_checkpoints: dict[str, str] = field(default_factory=dict)
    commits: int = 0
    """Commits whose added lines were attributed."""
    commits_seen: int = 0
    sessions: int = 0
    sessions_missing: int = 0
    """Sessions that checkpoints name and whose transcript is not in the store."""
    lines: dict[str, int] = field(default_factory=dict)
    """Added lines by tag."""
    share: Share = field(default_factory=Share)
    """The agents' share of the lines that have an author, not the blank ones: bounds, and the estimate between them."""
    modes: dict[str, dict[str, int]] = field(default_factory=dict)
    """Commits by coding mode, `replayed` and `recorded`; and `sessions`, by the replay."""
    agreement_with_record: Agreement = field(default_factory=Agreement)
    survival: outcomes.Survived = field(default_factory=outcomes.Survived)
    edits_not_found: int = 0
    """Replacements whose place in the file was not found."""
    unchanged: bool = False
    """Nothing changed since the last time: these are that time's figures."""


class _Kept(Struct):
    state: str
    result: Attribution = field(name="told")


class Tables(Struct):
    """Rows, labels and figures of one attribution, ready to be stored; no rows where nothing changed."""

    result: Attribution
    state: str
    commits: list[CommitRow] = field(default_factory=list)
    lines: list[LineRow] = field(default_factory=list)
    labels: OfSessions = field(default_factory=OfSessions)

    def write(self, store: Store) -> Attribution:
        """Puts the repository's `commits` and `line_attribution` into the store, and labels of its sessions."""
        if not self.result.unchanged:
            name = self.result.repo
            self.labels.write(store)
            sidecars.write_repository_rows(store.folder, name, "commits", self.commits)
            sidecars.write_repository_rows(store.folder, name, "line_attribution", self.lines)
            sidecars.write_note(store.folder, name, NOTE, _Kept(self.state, self.result))
        return self.result


def attribute(store: Store, git_dir: str, name: str, spec: str, afresh: bool = False) -> Tables:
    """Attributes the lines of the repository in `git_dir`, called `name`, whose checkpoints the source `spec` gives.
    Nothing is written: that is for who asked.
    """
    contents = "|".join(sorted(shard.rpartition("-")[2] for shard in store.readable_shards()))
    state = hashlib.blake2b(f"{code_stamp()}|{git.tips_name(git_dir)}|{contents}".encode(), digest_size=12).hexdigest()
    if not afresh and (note := sidecars.read_note(store.folder, name, NOTE)):
        with suppress(msgspec.DecodeError):  # of an older version
            kept = msgspec.json.decode(note, type=_Kept)
            if kept.state == state:
                kept.result.unchanged = True
                return Tables(kept.result, state)
    repository = opened(git_dir, spec)
    ids = _sessions(store, repository, name)
    trees, commit_points = worktrees(repository, points(repository), store.read(ids))
    objects = git.Objects(git_dir)
    try:
        done = [(w, Replay(w.operations, w.steps, Chances(w.activities), objects.get).run()) for w in trees]
    finally:
        objects.close()
    lines = {sha: added_lines for _, replayed in done for sha, added_lines in replayed.lines.items()}
    today = outcomes.living(repository, lines)
    written = outcomes.by_commit(done)
    rows = _commit_rows(repository, name, commit_points, done, written)
    labels = of_sessions(repository, commit_points, done)
    branches = {name.split("/", 2)[-1] for name, _ in git.refs(git_dir)}
    reasons = unlinked(repository.commits, repository.recorded, repository.links, branches)
    checkpoint_ids = {r.checkpoint_id for r in repository.recorded}
    by_mode = {
        "replayed": Counter(row.mode for row in rows if row.mode is not None),
        "recorded": Counter(row.recorded_mode for row in rows if row.recorded_mode is not None),
        "sessions": labels.modes,
    }
    result = Attribution(
        repo=name,
        checkpoints=len(checkpoint_ids),
        checkpoints_linked=len(checkpoint_ids - reasons.keys()),
        unlinked=counted(reasons),
        unlinked_checkpoints=reasons,
        commits=len(commit_points),
        commits_seen=len(repository.commits),
        sessions=len(ids),
        sessions_missing=len({r.session_id for r in repository.recorded} - ids),
        lines=dict(sorted(Counter(line.tag for added_lines in lines.values() for line in added_lines).items())),
        share=share_of(sum((authored(added_lines) for added_lines in lines.values()), Counter())),
        modes={kind: dict(sorted(modes.items())) for kind, modes in by_mode.items()},
        agreement_with_record=agreement(rows),
        survival=outcomes.Survived(
            outcomes.counts(fates for _, replayed in done for fates in replayed.fates.values()),
            outcomes.slices(written.values(), strict=True),
            outcomes.slices(written.values(), strict=False),
            outcomes.alive_at_head(today, lines),
        ),
        edits_not_found=sum(replayed.not_found for _, replayed in done),
    )
    line_rows = []
    for tree, replayed in done:
        for sha, added_lines in replayed.lines.items():
            for line in added_lines:
                by = tree.operations[line.mark] if line.mark >= 0 else None
                line_rows.append(
                    LineRow(
                        repo=name,
                        commit_sha=sha,
                        path=line.path,
                        line=line.line,
                        tag=line.tag,
                        session_id=by.session_id if by else None,
                        seq=by.seq if by else None,
                        is_blank=line.is_blank,
                        alive=today.has(sha, line),
                    )
                )
    return Tables(result, state, rows, line_rows, labels)


def _sessions(store: Store, repository: Repository, name: str) -> set[str]:
    """The sessions of the repository in the store: those its checkpoints name, those read from it, those that worked in
    its folder.
    """
    from agentsignals.store.shards import read_header  # noqa: PLC0415  (pyarrow is loaded when asked)

    named = {r.session_id for r in repository.recorded} & store.manifest.sessions.keys()
    artifacts = {artifact_id(uri) for uri in store.manifest.files if uri.startswith(f"git:{name}@")}
    inside = name.rstrip("/")
    for shard in store.readable_shards("sessions"):
        for row in read_header(
            store.folder, shard, ["session_id", "cwd", "artifact_id"], gone=store.manifest.shards[shard].gone
        ):
            cwd = (row["cwd"] or "").rstrip("/")
            if row["artifact_id"] in artifacts or cwd == inside or cwd.startswith(f"{inside}/"):
                named.add(row["session_id"])
    return named


def _commit_rows(
    repository: Repository,
    name: str,
    commit_points: list[Point],
    done: list[tuple[Worktree, Replayed]],
    written: dict[str, outcomes.Slice],
) -> list[CommitRow]:
    by_commit = {p.commit.sha: p for p in commit_points}
    trees = {sha: (tree, replayed.lines[sha]) for tree, replayed in done for sha in replayed.lines}
    copies = {link.sha for link in repository.links if link.relation == "copy"}
    recorded: dict[str, list[Recorded]] = {}
    for record in repository.recorded:
        recorded.setdefault(record.checkpoint_id, []).append(record)
    rows = []
    for commit in repository.commits:
        point = by_commit.get(commit.sha)
        relation = point.relation if point else "copy" if commit.sha in copies else None
        row = commit_row(name, commit, relation, point.sessions if point else frozenset())
        rows.append(row)
        if point is None or commit.sha not in trees:
            continue
        tree, lines = trees[commit.sha]
        files = repository.history.get(commit.sha)
        if files is None:  # objects of it are missing: what it added is not known, which is not nothing
            row.flags = ["diff_unreadable"]
            continue
        share = share_of(authored(lines))
        row.in_turn = _in_turn(point, tree)
        row.files, row.added, row.blank = len(files), len(lines), sum(line.is_blank for line in lines)
        row.agent_low, row.agent_high, row.agent_likely = share.low, share.high, share.likely
        row.mode = mode_of(share.low, share.high)
        tags = dict.fromkeys(_TAGS, 0) | Counter(line.tag for line in lines)
        for column, n in (tags | msgspec.structs.asdict(written[commit.sha])).items():
            setattr(row, column, n)
        _fill_recorded(row, [r for i in point.checkpoint_ids for r in recorded.get(i, ())])
    return rows


_TAGS = (
    "agent_exact", "agent_ws", "agent_shell", "agent_other_session", "human_observed", "preexisting", "moved",
    "generated", "unknown",
)  # fmt: skip


def _in_turn(point: Point, tree: Worktree) -> bool:
    """Return whether a session had edited in the turn in which the commit was made, and went on after it."""
    made = point.commit.committed_at
    return any(
        start < made < end
        and any(o.session_id == activity.session_id and start <= o.at <= point.at for o in tree.operations)
        for activity in tree.activities
        if activity.session_id in point.sessions
        for start, end in activity.busy
    )


def _fill_recorded(row: CommitRow, records: list[Recorded]) -> None:
    """Entire's figure beside ours, with what speaks against comparing them
    (design/attribution.md#what-entire-recorded)."""
    checks = [
        ("not_original", row.relation != "original"),
        ("in_turn", row.in_turn),
        ("several_sessions", len(records) > 1),
    ]
    figure = records[0].attributed if len(records) == 1 else None
    percent = figure.agent_percentage if figure is not None else None
    if figure is None or percent is None:
        checks.append(("no_record", len(records) <= 1))
    else:
        row.recorded_percentage, row.recorded_mode = percent, mode_of(percent / 100, percent / 100)
        row.recorded_agent_lines = figure.agent_lines
        total, added = figure.total_committed, row.added or 0
        checks.append(("metric_v2", (figure.metric_version or 1) > 1))
        checks.append(("total_differs", total is None or abs(total - added) > max(1.0, _NEAR_SHARE * added)))
    row.flags = [flag for flag, is_so in checks if is_so]
