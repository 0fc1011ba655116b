"""Attribute the lines of a repository to people and agents: replay, figures, tables, labels of sessions."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from statistics import StatisticsError, correlation, mean

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes.worktrees import LABELLER, label
from agentsignals.repositories import outcomes
from agentsignals.repositories.outcomes import Share, authored, mode_of, share_of
from agentsignals.repositories.replay import Chances, Replay, Replayed
from agentsignals.repositories.working_trees import (
    Point,
    Recorded,
    Repository,
    Worktree,
    commit_row,
    opened,
    points,
    unlinked,
    worktrees,
)  # fmt: skip
from agentsignals.store import Store, artifact_id, sidecars
from agentsignals.store.disk import code_stamp
from agentsignals.store.sidecars import LabelRow
from agentsignals.store.tables import CommitRow, LineRow

# Entire's recorded figures against the replay's, and what parts them (design/attribution.md#what-entire-recorded).

FAR_POINTS = 7.0
"""A difference from Entire's percentage that asks for a cause."""
_FLAGS = {
    "in_turn": "committed mid-turn, so the record covers the turn before",
    "not_original": "the commit was rewritten since",
    "metric_v2": "the record uses a newer measure",
}


class Difference(Struct, kw_only=True):
    """A commit whose replayed share is far from the recorded one, on a row that should be comparable."""

    commit_sha: str
    recorded: float
    replayed: float
    low: float | None
    high: float | None
    """The interval of the replay: surely an agent's at least, not surely a person's at most."""
    added: int
    cause: str


class Agreement(Struct, kw_only=True):
    """Entire's figures against the replay's, in percentage points."""

    n: int = 0
    mae: float | None = None
    r: float | None = None
    basis: str = "original commit, one session, no agent running, recorded total close to the added lines"
    within_interval: int = 0
    """Rows whose recorded percentage lies in the replay's interval, a point more or less."""
    unknown_n: int = 0
    unknown_mae: float | None = None
    """The error of the estimate, an unknown line counting for half, on those of these rows that have unknown lines."""
    all_rows: int = 0
    all_mae: float | None = None
    lines_n: int = 0
    lines_mae: float | None = None
    lines_r: float | None = None
    """Same figures over all rows, by the recorded agent's lines as a share of the commit's added lines. Lines that
    the record counts in files outside the commit are left out."""
    causes: dict[str, int] = field(default_factory=dict)
    far: list[Difference] = field(default_factory=list)


def agreement(rows: list[CommitRow]) -> Agreement:
    """The recorded percentages against the replayed ones, on rows where both mean the same; and on all of them."""
    pairs = [
        (row, row.recorded_percentage, 100 * row.agent_likely)
        for row in rows
        if row.recorded_percentage is not None and row.agent_likely is not None
    ]
    far = []
    within = 0
    for row, a, b in pairs:
        if row.flags:
            continue
        low, high = (None if share is None else 100 * share for share in (row.agent_low, row.agent_high))
        within += low is not None and high is not None and low - 1 <= a <= high + 1
        if abs(a - b) > FAR_POINTS:
            n = max(_shares(row).values())
            far.append(
                Difference(
                    commit_sha=row.commit_sha,
                    recorded=a,
                    replayed=b,
                    low=low,
                    high=high,
                    added=row.added or 0,
                    cause=_cause(row) + (f": {n} of {row.added or 1}" if n else ""),
                )
            )
    n, mae, r = _errors((a, b) for row, a, b in pairs if not row.flags)
    unknown_n, unknown_mae, _ = _errors((a, b) for row, a, b in pairs if not row.flags and row.unknown)
    all_rows, all_mae, _ = _errors((a, b) for _, a, b in pairs)
    lines_n, lines_mae, lines_r = _errors((share, b) for row, _, b in pairs if (share := _of_lines(row)) is not None)
    return Agreement(
        n=n, mae=mae, r=r, within_interval=within, unknown_n=unknown_n, unknown_mae=unknown_mae, all_rows=all_rows,
        all_mae=all_mae, lines_n=lines_n, lines_mae=lines_mae, lines_r=lines_r, far=far,
        causes=dict(Counter(_cause(row) for row, a, b in pairs if abs(a - b) > FAR_POINTS).most_common()),
    )  # fmt: skip


def _errors(pairs: Iterable[tuple[float, float]]) -> tuple[int, float | None, float | None]:
    known = list(pairs)
    r: float | None = None
    with suppress(StatisticsError, TypeError):  # fewer than two, or no spread
        r = round(correlation(*zip(*known, strict=True)), 12)  # the last digits depend on the version of Python
    return len(known), mean(abs(a - b) for a, b in known) if known else None, r


def _of_lines(row: CommitRow) -> float | None:
    """The recorded agent's lines in percent of the added ones; None where nothing was recorded or added."""
    if row.recorded_agent_lines is None or not row.added:
        return None
    return 100 * min(row.recorded_agent_lines / row.added, 1.0)


def _cause(row: CommitRow) -> str:
    """Name the most likely cause of a difference: lines the record counts elsewhere, then its time, then the tags."""
    by_lines, ours = _of_lines(row), 100 * (row.agent_likely or 0)
    if "total_differs" in row.flags and by_lines is not None and abs(by_lines - ours) <= FAR_POINTS:
        return "the record counts lines that are not in the commit"
    for flag, words in _FLAGS.items():
        if flag in row.flags:
            return words
    cause, n = max(_shares(row).items(), key=lambda pair: pair[1])
    if "total_differs" in row.flags and not row.recorded_agent_lines:
        return "the record has none of the agent's lines"
    return cause if n else "the record counts lines the calls do not show"


def _shares(row: CommitRow) -> dict[str, int]:
    return {
        "lines written only by other sessions' calls": row.agent_other_session or 0,
        "lines not explained by the transcripts": row.unknown or 0,
        "lines inferred from commands": row.agent_shell or 0,
        "lines a person wrote between turns": row.human_observed or 0,
        "moved, generated or older lines": (row.moved or 0) + (row.generated or 0) + (row.preexisting or 0),
    }


# The attribution itself.

SURVIVAL, MODE = "code_survival", "coding_mode"


def session_labels(
    repository: Repository, commit_points: list[Point], done: list[tuple[Worktree, Replayed]], ours: set[str]
) -> dict[str, list[LabelRow]]:
    """Label the sessions that worked in a repository from its replay, by task: the share of their lines that reached a
    commit, the coding mode of the lines of all commits they are linked to, whoever wrote them (SWE-chat, M2), and their
    outcomes."""
    rows: dict[str, list[LabelRow]] = {SURVIVAL: [], MODE: []}
    reason = "lines that reached a commit / lines that edits wrote (Eq 2, any later commit)"
    for session_id, survived in sorted(outcomes.by_session(done).items()):
        if (rate := survived.efficiency) is not None:
            rows[SURVIVAL].append(LabelRow(session_id, label(survived, f"{rate:.4f}", rate, reason, SURVIVAL)))
    lines = {sha: added_lines for _, replayed in done for sha, added_lines in replayed.lines.items()}
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for point in commit_points:
        for session_id in point.sessions & ours:
            tags[session_id] += authored(lines.get(point.commit.sha, []))
    reason = "the whole interval [surely an agent's, not surely a person's] lies in the mode"
    for session_id, n_by_tag in sorted(tags.items()):
        share = share_of(n_by_tag)
        if share.n:
            mode = mode_of(share.low, share.high)
            rows[MODE].append(LabelRow(session_id, label(share, mode, share.likely, reason, MODE)))
    return rows | outcomes.Outcomes(repository, commit_points, done).labels()


NOTE = "attribution"
_NEAR_SHARE = 0.1
"""A recorded total so near the lines that the commit really added counts as consistent."""


class Attribution(Struct, kw_only=True):
    repo: str
    checkpoints: int = 0
    checkpoints_linked: int = 0
    unlinked: dict[str, int] = field(default_factory=dict)
    unlinked_checkpoints: dict[str, str] = field(default_factory=dict)
    commits: int = 0
    commits_seen: int = 0
    sessions: int = 0
    sessions_missing: int = 0
    """Sessions that checkpoints name and whose transcript is not in the store."""
    lines: dict[str, int] = field(default_factory=dict)
    share: Share = field(default_factory=Share)
    """The agents' share of the lines that have an author, not the blank ones: bounds, and the estimate between them."""
    modes: dict[str, dict[str, int]] = field(default_factory=dict)
    """Commits by coding mode, `replayed` and `recorded`; and `sessions`, by the replay."""
    agreement_with_record: Agreement = field(default_factory=Agreement)
    survival: outcomes.Survived = field(default_factory=outcomes.Survived)
    edits_not_found: int = 0
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
    sessions: set[str] = field(default_factory=set)
    """The repository's sessions, those without a label among them."""
    labels: dict[str, list[LabelRow]] = field(default_factory=dict)

    def write(self, store: Store) -> Attribution:
        if not self.result.unchanged:
            name = self.result.repo
            for task, rows in self.labels.items():
                sidecars.replace_labels(store.folder, task, LABELLER, self.sessions, rows)
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
    with closing(git.Objects(git_dir)) as objects:
        done = [(w, Replay(w.operations, w.steps, Chances(w.activities), objects.get).run()) for w in trees]
    lines = {sha: added_lines for _, replayed in done for sha, added_lines in replayed.lines.items()}
    today = outcomes.living(repository, lines)
    written = outcomes.by_commit(done)
    rows = _commit_rows(repository, name, commit_points, done, written)
    ours = {activity.session_id for tree, _ in done for activity in tree.activities}
    labels = session_labels(repository, commit_points, done, ours)
    branches = {name.split("/", 2)[-1] for name, _ in git.refs(git_dir)}
    reasons = unlinked(repository.commits, repository.recorded, repository.links, branches)
    checkpoint_ids = {r.checkpoint_id for r in repository.recorded}
    by_mode = {
        "replayed": Counter(row.mode for row in rows if row.mode is not None),
        "recorded": Counter(row.recorded_mode for row in rows if row.recorded_mode is not None),
        "sessions": Counter(row.label.value for row in labels[MODE]),
    }
    result = Attribution(
        repo=name,
        checkpoints=len(checkpoint_ids),
        checkpoints_linked=len(checkpoint_ids - reasons.keys()),
        unlinked=dict(sorted(Counter(reasons.values()).items())),
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
    return Tables(result, state, rows, line_rows, ours, labels)


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
    """Return a row for each commit: whose lines it added, and what its checkpoints recorded."""
    by_commit = {p.commit.sha: p for p in commit_points}
    trees = {sha: (tree, replayed.lines[sha]) for tree, replayed in done for sha in replayed.lines}
    copies = {link.sha for link in repository.links if link.relation == "copy"}
    recorded: dict[str, list[Recorded]] = defaultdict(list)
    for record in repository.recorded:
        recorded[record.checkpoint_id].append(record)
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
        # A session had edited in the turn in which the commit was made, and went on after it.
        row.in_turn = any(
            start < commit.committed_at < end
            and any(o.session_id == activity.session_id and start <= o.at <= point.at for o in tree.operations)
            for activity in tree.activities
            if activity.session_id in point.sessions
            for start, end in activity.busy
        )
        row.files, row.added, row.blank = len(files), len(lines), sum(line.is_blank for line in lines)
        row.agent_low, row.agent_high, row.agent_likely = share.low, share.high, share.likely
        row.mode = mode_of(share.low, share.high)
        tags = dict.fromkeys(_TAGS, 0) | Counter(line.tag for line in lines)
        for column, n in (tags | msgspec.structs.asdict(written[commit.sha])).items():
            setattr(row, column, n)
        _fill_recorded(row, [r for i in point.checkpoint_ids for r in recorded[i]])
    return rows


_TAGS = (
    "agent_exact", "agent_ws", "agent_shell", "agent_other_session", "human_observed", "preexisting", "moved",
    "generated", "unknown",
)  # fmt: skip


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
