"""Input of the replay: changes to files, commits with their checkpoints, and both as working trees.

Changes are read from the arguments of calls, which hold the full texts. Checkpoints link commits to sessions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Literal

import msgspec
from msgspec import Struct, field, structs

from agentsignals.changes import git
from agentsignals.changes.git import Commit, FileChange
from agentsignals.changes.hunks import edit_texts, patched
from agentsignals.changes.worktrees import Naming, Tree, plain_folder
from agentsignals.errors import SourceError
from agentsignals.formats.entire import Attribution, Metadata, decode_metadata, undated_session_id
from agentsignals.model import Edit, Session, ToolCall, from_iso
from agentsignals.shell import parse
from agentsignals.sources import RawFile, open_source, read
from agentsignals.store.tables import CommitRow

Kind = Literal["write", "append", "replace", "insert", "substitute", "delete", "rename", "shell"]
"""`substitute`: in every line (`sed s/a/b/`); `shell`: a command that writes the file in a way its words don't tell."""

_READS = frozenset(("read", "search"))
_LONGEST_COMMAND = 100_000
_QUIET_GIT = re.compile(
    r"\bgit\b(?:[ \t]+-\S+(?:[ \t]+[^\s-]\S*)?)*[ \t]+"
    r"(?:add|commit|mv|rm|status|diff|log|show|push|fetch|branch|rev-parse|blame)\b"
)
"""Commands of Git that leave the lines of files alone."""


class Operation(Struct, gc=False, kw_only=True):
    """One change that a call made to one file. `at` in microseconds; `path` as the session names it."""

    at: int
    session_id: str
    seq: int
    turn: int | None
    kind: Kind
    path: str
    new: str = ""
    """The text that came in."""
    old: str = ""
    """The text it took the place of: a piece of the file as it was before the call."""
    everywhere: bool = False
    to: str = ""
    """Where a renamed file went."""
    line: int = 0
    """Lines of the file before an inserted text."""
    via: str = "edit_tool"


class Activity(Struct, gc=False, kw_only=True):
    """When a session was busy and what it might have changed unseen."""

    session_id: str
    busy: list[tuple[int, int]]
    """From each human turn to the agent's last sign of life before the next, microseconds."""
    writers: list[int]
    """Times of calls that may change files without saying which lines: commands, subagents whose work isn't logged,
    tools of servers, edits whose outcome isn't logged."""
    commands: list[tuple[int, str]]
    """The commands among them."""
    started_at: int | None = None
    ended_at: int | None = None
    is_a_persons: bool = True
    """True where a person asked for something in the session; false for subagents' sessions."""


def clocked(session: Session, by_end: bool = False) -> Iterator[tuple[int, ToolCall]]:
    """The calls with when each began (or ended), microseconds, never before the one before it in its thread: a subagent
    works while the call that started it is open."""
    clocks: dict[str, int] = {}
    for call in session.tool_calls:
        clock = clocks.get(call.thread, session.started_at or 0)
        at = (call.ended_at or call.started_at) if by_end else (call.started_at or call.ended_at)
        clocks[call.thread] = max(clock, at or clock)
        yield clocks[call.thread], call


def operations(session: Session) -> list[Operation]:
    """The changes of a session that succeeded, in order; the subagents' too."""
    edits: dict[int, list[Edit]] = {}
    for edit in session.edits:
        edits.setdefault(edit.seq, []).append(edit)
    collected: list[Operation] = []
    for clock, call in clocked(session, by_end=True):
        if call_edits := edits.get(call.seq):
            made = partial(
                Operation, at=clock, session_id=session.session_id, seq=call.seq, turn=call.turn, via=call_edits[0].via
            )
            of_call = _of_command if call_edits[0].via == "shell" else _of_tool
            collected += of_call(call, call_edits, made)
    return sorted(collected, key=lambda operation: operation.at)


def activity(session: Session) -> Activity:
    """When people could have typed, and when something unseen could have been written."""
    threads = {call.thread for call in session.tool_calls}
    edit_seqs = {edit.seq for edit in session.edits}
    writers, commands = [], []
    for clock, call in clocked(session):
        if call.status in ("rejected", "cancelled"):
            continue
        if call.command:
            command = call.command[:_LONGEST_COMMAND]
            plain = _QUIET_GIT.sub("", command)
            is_quiet = call.shell_kind == "vcs" and "git" not in plain and ">" not in plain
            if call.shell_kind not in _READS and not is_quiet:
                writers.append(call.ended_at or clock)
                commands.append((call.ended_at or clock, command))
        elif (
            call.class_ == "mcp"
            or (call.class_ == "task" and len(threads) == 1)
            or (call.class_ == "edit" and call.status == "none" and call.seq not in edit_seqs)
        ):
            writers.append(call.ended_at or clock)
    spans: list[tuple[int, int]] = []
    turns = session.turns
    asked = {turn.seq for turn in turns if turn.kind != "attachment"}
    for event in session.events:
        if event.timestamp is None:
            continue
        if event.seq in asked or not spans:
            spans.append((event.timestamp, event.timestamp))
        elif event.kind != "human_turn" and event.timestamp > spans[-1][1]:
            spans[-1] = (spans[-1][0], event.timestamp)
    return Activity(
        session_id=session.session_id,
        busy=spans,
        writers=writers,
        commands=commands,
        started_at=session.started_at,
        ended_at=session.ended_at,
        # A session that takes up a plan is as much the person's as the one the plan was made in.
        is_a_persons=bool(turns) and (session.parent_session_id is None or turns[0].kind == "plan_handoff"),
    )


def _of_tool(call: ToolCall, edits: list[Edit], made: Callable[..., Operation]) -> Iterator[Operation]:
    paths = list(dict.fromkeys(edit.path for edit in edits))
    for text in edit_texts(call.arguments, call.argument_roles):
        if text.kind == "patch":
            yield from _of_patch(text.new, paths, made)
        elif text.kind == "replace" and text.old:
            yield made(kind="replace", path=paths[0], old=text.old, new=text.new, everywhere=text.everywhere)
        elif text.kind in ("insert", "append"):
            yield made(kind=text.kind, path=paths[0], new=text.new, line=text.line)
        elif text.kind != "part":
            yield made(kind="write", path=paths[0], new=text.new)


def _of_patch(patch: str, paths: list[str], made: Callable[..., Operation]) -> Iterator[Operation]:
    """Yield the operations of a patch: files written, replaced in, renamed, deleted."""
    for file in patched(patch.removesuffix("\n"), diffs=True):
        path = _named(file.path, paths)
        if file.op == "delete":
            yield made(kind="delete", path=path)
            continue
        if file.moved_to:
            target = _named(file.moved_to, paths)
            yield made(kind="rename", path=path, to=target)
            path = target
        if file.op == "create":
            yield made(kind="write", path=path, new="\n".join(new for _, new in file.texts))
        else:
            for old, new in file.texts:
                yield made(kind="replace", path=path, old=old, new=new)


def _of_command(call: ToolCall, edits: list[Edit], made: Callable[..., Operation]) -> Iterator[Operation]:
    """Read the texts a command writes from its words; where they do not tell, only the file is known."""
    paths = list(dict.fromkeys(edit.path for edit in edits))
    writes = [(_named(write.path, paths), write) for write in parse(call.command or "").writes]
    renamed = {_named(write.source, paths) for _, write in writes if write.op == "rename" and write.source}
    for path, write in writes:
        if path not in paths:
            continue
        if write.op == "delete":
            if path not in renamed:
                yield made(kind="delete", path=path)
        elif write.op == "rename" and write.source is not None:
            yield made(kind="rename", path=_named(write.source, paths), to=path)
        elif write.how in ("whole", "append"):
            yield made(kind="write" if write.how == "whole" else "append", path=path, new=write.new)
        elif write.how == "insert" and write.line is not None:
            yield made(kind="insert", path=path, new=write.new, line=write.line)
        elif write.how == "patch":
            yield from _of_patch(f"--- a/{path}\n+++ b/{path}\n{write.new}", [path], made)
        elif write.how in ("replace", "substitute") and write.line is None:
            yield made(kind=write.how, path=path, old=write.old, new=write.new, everywhere=write.everywhere)
        else:
            yield made(kind="shell", path=path)
    covered = {path for path, _ in writes}
    for path in paths:
        if path not in covered:
            gone = all(edit.op == "delete" for edit in edits if edit.path == path)
            yield made(kind="delete" if gone else "shell", path=path)


def _named(raw: str, paths: list[str]) -> str:
    """The path of the session's own record that a path written in a call means."""
    plain = raw.strip().replace("\\", "/").removeprefix("./")
    for path in paths:
        if plain == path or plain.endswith(f"/{path}") or path.endswith(f"/{plain}"):
            return path
    return plain


# Checkpoints as Entire recorded them, and the commits that name them (design/attribution.md#checkpoint-layouts).

ORIGINAL_WITHIN_US = 120_000_000
"""A commit made no further than this from when its checkpoint was taken is the one it was taken for (e.1)."""


class Recorded(Struct, gc=False):
    """One session of one checkpoint. Times in microseconds since 1970 UTC."""

    checkpoint_id: str
    session_id: str
    created_at: int | None
    branch: str | None
    attributed: Attribution | None

    @property
    def taken_at(self) -> int | None:
        """When the lines were counted, else when the record was written."""
        counted = from_iso(self.attributed.calculated_at) if self.attributed else None
        return counted if counted is not None else self.created_at


class Link(Struct):
    """A checkpoint with its commit."""

    checkpoint_id: str
    sha: str
    relation: str
    """`original`, `rewritten` (made later than the checkpoint: a rebase, an amend), `further` (another commit with
    the same trailer and changes of its own), `copy` (the same change again: a cherry-pick, a rebase)."""


def recorded(spec: str) -> list[Recorded]:
    """Read the checkpoint records of a repository (`git:…`), one a session and checkpoint."""
    try:
        files = [f for f in open_source(spec) if isinstance(f, RawFile) and f.uri.endswith("/metadata.json")]
    except SourceError:
        return []
    records: dict[tuple[str, str], Recorded] = {}
    for data in read(files):
        try:
            metadata = decode_metadata(data) if isinstance(data, bytes) else Metadata()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if metadata.checkpoint_id and metadata.session_id:
            key = metadata.checkpoint_id, undated_session_id(metadata.session_id)
            earlier = records.get(key)
            if earlier is None or earlier.attributed is None:
                made = from_iso(metadata.created_at)
                records[key] = Recorded(*key, made, metadata.branch, metadata.initial_attribution)
    return list(records.values())


def links(commits: Iterable[Commit], rows: Iterable[Recorded]) -> list[Link]:
    """Each commit that names a checkpoint, with what it is to it; merges name none of their own."""
    taken_at: dict[str, int | None] = {}
    for row in rows:
        taken_at[row.checkpoint_id] = taken_at.get(row.checkpoint_id) or row.taken_at
    naming: dict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        if not commit.is_merge:
            for checkpoint_id in commit.checkpoint_ids:
                naming[checkpoint_id].append(commit)
    linked: list[Link] = []
    for checkpoint_id, named in naming.items():
        taken = taken_at.get(checkpoint_id)
        off = {c.sha: abs(c.committed_at - taken) if taken is not None else 0 for c in named}
        by_nearness = sorted(named, key=lambda c: (off[c.sha], c.committed_at))
        changes: set[tuple[int, str, str]] = set()
        for commit in by_nearness:
            change = (commit.authored_at, commit.author, commit.subject)  # kept by rebase, cherry-pick and amend
            if change in changes:
                relation = "copy"
            elif commit is not by_nearness[0]:
                relation = "further"
            else:
                relation = "original" if taken is None or off[commit.sha] < ORIGINAL_WITHIN_US else "rewritten"
            changes.add(change)
            linked.append(Link(checkpoint_id, commit.sha, relation))
    return linked


def unlinked(commits: list[Commit], rows: list[Recorded], links: list[Link], branches: set[str]) -> dict[str, str]:
    """Why each checkpoint without a commit has none."""
    linked = {link.checkpoint_id for link in links}
    merges = {i for c in commits if c.is_merge for i in c.checkpoint_ids}
    reasons: dict[str, str] = {}
    for row in rows:
        if row.checkpoint_id in linked or row.checkpoint_id in reasons:
            continue
        taken = row.taken_at
        if row.checkpoint_id in merges:
            reason = "named_by_merges_only"
        elif taken is not None and any(abs(c.committed_at - taken) < ORIGINAL_WITHIN_US for c in commits):
            reason = "commit_without_trailer"
        elif row.branch and row.branch not in branches:
            reason = "branch_not_in_clone"
        else:
            reason = "commit_not_in_history"
        reasons[row.checkpoint_id] = reason
    return reasons


# The commits of a repository with the sessions that checkpoints link them to, before any line is attributed.


class Gathered(Struct):
    """Commits, what checkpoints say of themselves, and what links them."""

    commits: list[Commit]
    recorded: list[Recorded]
    links: list[Link]

    @property
    def checkpoint_ids(self) -> set[str]:
        return {row.checkpoint_id for row in self.recorded}

    def rows(self, name: str) -> list[CommitRow]:
        """A row a commit for the store, the repository called `name`."""
        sessions: dict[str, set[str]] = defaultdict(set)
        for record in self.recorded:
            sessions[record.checkpoint_id].add(record.session_id)
        relations: dict[str, str] = {}
        for link in self.links:
            if relations.get(link.sha) != "original":
                relations[link.sha] = link.relation
        return [
            commit_row(name, c, relations.get(c.sha), set[str]().union(*(sessions[i] for i in c.checkpoint_ids)))
            for c in self.commits
        ]


def gather(git_dir: str, spec: str) -> Gathered:
    """The code history of a Git folder, and the checkpoints that the source `spec` (`git:…`) gives."""
    commits = git.commits(git_dir)
    rows = recorded(spec)
    return Gathered(commits, rows, links(commits, rows))


def commit_row(name: str, commit: Commit, relation: str | None, sessions: set[str] | frozenset[str]) -> CommitRow:
    """A commit as the store keeps it."""
    return CommitRow(
        repo=name,
        commit_sha=commit.sha,
        parent_sha=commit.parents[0] if commit.parents else None,
        authored_at=commit.authored_at,
        committed_at=commit.committed_at,
        author=commit.author,
        subject=commit.subject,
        is_merge=commit.is_merge,
        checkpoint_ids=list(commit.checkpoint_ids),
        relation=relation,
        session_ids=sorted(sessions),
    )


# Working trees.

_SECOND_US = 1_000_000
BEFORE_US = 30 * 24 * 3600 * _SECOND_US
"""Sessions begin no longer before their first linked commit: what older commits changed is not asked for."""
RECENT_US = 14 * 24 * 3600 * _SECOND_US
"""Without checkpoints, a commit is a session's when it changes a file that the session changed no longer before."""


class Point(Struct):
    """A commit with the sessions whose work it is."""

    commit: Commit
    sessions: frozenset[str]
    relation: str
    checkpoint_ids: tuple[str, ...] = ()
    at: int = 0
    """The moment until which operations precede it, microseconds."""


class Step(Struct, kw_only=True):
    """A commit on the way of a working tree. `at`: the moment until which operations precede it."""

    sha: str
    parent: str | None
    at: int
    parent_at: int
    changes: list[FileChange]
    trunk: list[tuple[int, str]] = field(default_factory=list)
    """(when it was made, commit) of its first parents, the newest first, as far back as the first operation."""
    sessions: frozenset[str] = frozenset()
    """The sessions whose work it is; empty for a commit that nothing links to any."""
    is_linked: bool = False
    is_witnessed: bool = True
    """True where the transcripts of all those sessions are at hand: else nobody knows when an agent was busy."""


class Worktree(Struct):
    """Operations, activity and commits of one working tree, in order of time."""

    root: str
    operations: list[Operation]
    activities: list[Activity]
    steps: list[Step]


class Repository(Gathered, kw_only=True):
    """A repository's history, its checkpoints, and what connects them."""

    git_dir: str
    history: dict[str, list[FileChange]]
    """Changes of each commit; commits whose objects are missing are left out."""
    head: str | None
    """The commit that the repository stands at."""
    by_sha: dict[str, Commit]


def opened(git_dir: str, spec: str) -> Repository:
    """The code history of a Git folder, and the checkpoints that the source `spec` (`git:…`) gives."""
    gathered = gather(git_dir, spec)
    commits, linked = gathered.commits, {link.sha for link in gathered.links}
    began = min((c.committed_at for c in commits if c.sha in linked), default=0) - BEFORE_US
    history = dict(git.changes(git_dir, [c.sha for c in commits if c.committed_at >= began]))
    by_sha = {c.sha: c for c in commits}
    return Repository(
        **structs.asdict(gathered), git_dir=git_dir, history=history, head=git.head(git_dir), by_sha=by_sha
    )


def points(repository: Repository) -> list[Point]:
    """The commits that trailers link to sessions; a change made again (a cherry-pick) counts once."""
    sessions: dict[str, set[str]] = defaultdict(set)
    taken: dict[str, int] = {}
    for row in repository.recorded:
        sessions[row.checkpoint_id].add(row.session_id)
        if row.taken_at is not None:
            taken.setdefault(row.checkpoint_id, row.taken_at)
    met: dict[str, Point] = {}
    for link in (link for link in repository.links if link.relation != "copy"):
        commit = repository.by_sha[link.sha]
        at = commit.committed_at
        if link.relation == "rewritten":
            at = min(at, taken.get(link.checkpoint_id, at))
        point = met.setdefault(link.sha, Point(commit, frozenset(), link.relation, (), at + _SECOND_US - 1))
        point.sessions |= sessions[link.checkpoint_id]
        point.checkpoint_ids += (link.checkpoint_id,)
        if point.relation != "original" and link.relation == "original":
            point.relation, point.at = "original", commit.committed_at + _SECOND_US - 1
    return sorted(met.values(), key=lambda p: (p.at, p.commit.committed_at, p.commit.sha))


def worktrees(
    repository: Repository, commit_points: list[Point], sessions: Iterator[Session]
) -> tuple[list[Worktree], list[Point]]:
    """The sessions by the folder they worked in, each with its operations and the commits on its way.

    Also gives the commits to attribute: those of `found`; without any, those that changed what sessions had changed.
    """
    history = repository.history
    paths = {path for files in history.values() for f in files for path in (f.path, f.old_path) if path}
    tree = Tree(paths | (git.files_at(repository.git_dir, repository.head) if repository.head else set()))
    by_root: dict[str, tuple[list[Operation], list[Activity]]] = {}
    home: dict[str, str] = {}
    timed: set[str] = set()
    read = [(s.session_id, s.cwd, operations(s), activity(s)) for s in sessions]
    folders = {plain_folder(cwd) for _, cwd, _, _ in read}
    for session_id, cwd, made, busy in read:
        naming = Naming(tree, cwd, [p for operation in made for p in (operation.path, operation.to) if p], folders)
        home[session_id] = naming.root
        ours, active = by_root.setdefault(naming.root, ([], []))
        active.append(busy)
        if busy.busy:  # without times nobody knows when a person had the chance
            timed.add(session_id)
        for operation in made:
            path = naming.of(operation.path)
            if path is not None:
                operation.path = path
                operation.to = (naming.of(operation.to) or "") if operation.to else ""
                ours.append(operation)
    # Folders of sessions that share a checkpoint are one working tree, whatever the folders are called.
    for point in commit_points:
        first, *others = sorted({home[s] for s in point.sessions if s in home}) or [""]
        for other in others:
            ours, active = by_root.pop(other)
            by_root[first][0].extend(ours)
            by_root[first][1].extend(active)
            home = {session_id: first if root == other else root for session_id, root in home.items()}
    if not repository.recorded:
        commit_points = _by_files(repository, [o for ours, _ in by_root.values() for o in ours])
    made_trees = []
    for root, (ours, active) in sorted(by_root.items()):
        ours.sort(key=lambda o: (o.at, o.session_id, o.seq))
        points_here = [p for p in commit_points if any(home.get(s) == root for s in p.sessions)]
        made_trees.append(Worktree(root, ours, active, _steps(repository, points_here, ours, timed)))
    strays = [p for p in commit_points if not any(s in home for s in p.sessions)]
    if strays:  # their transcripts are missing: nothing is known but the commit
        made_trees.append(Worktree("", [], [], _steps(repository, strays, [], timed)))
    return made_trees, commit_points


def _steps(repository: Repository, points: list[Point], ours: list[Operation], timed: Container[str]) -> list[Step]:
    """The linked commits of a working tree, and between them those of others that came into it."""
    by_sha, history = repository.by_sha, repository.history
    linked = {p.commit.sha for p in points}
    began = ours[0].at if ours else None
    seen: set[str] = set()
    steps: list[Step] = []

    def step(commit: Commit, at: int) -> Step:
        parent = by_sha.get(commit.parents[0]) if commit.parents else None
        return Step(
            sha=commit.sha,
            parent=parent.sha if parent else None,
            at=at,
            parent_at=min(parent.committed_at if parent else 0, at),
            changes=history.get(commit.sha, []),
        )

    for point in points:
        for sha in git.ancestors(by_sha, point.commit.sha, seen)[1:]:
            commit = by_sha[sha]
            if sha not in linked and not commit.is_merge and began is not None and commit.committed_at >= began:
                steps.append(step(commit, min(commit.committed_at + _SECOND_US - 1, point.at)))
        own = step(point.commit, point.at)
        own.sessions, own.is_linked = point.sessions, True
        commit = point.commit
        while commit.parents and commit.parents[0] in by_sha:  # its first parents, back to the first operation
            commit = by_sha[commit.parents[0]]
            own.trunk.append((commit.committed_at, commit.sha))
            if began is None or commit.committed_at <= began:
                break
        own.is_witnessed = bool(point.sessions) and all(session_id in timed for session_id in point.sessions)
        steps.append(own)
    head = by_sha.get(repository.head or "")
    if points and head is not None:  # what came after: lines may reach a commit that nothing links to a session
        last = max(p.at for p in points)
        for sha in [head.sha, *git.ancestors(by_sha, head.sha, seen)[1:]]:
            commit = by_sha[sha]
            if not commit.is_merge and commit.committed_at > last and sha not in linked:
                steps.append(step(commit, commit.committed_at + _SECOND_US - 1))
    return sorted(steps, key=lambda s: s.at)


def _by_files(repository: Repository, ours: list[Operation]) -> list[Point]:
    """Commits that change a file which sessions changed shortly before, and whose change nobody committed since."""
    waiting: dict[str, list[Operation]] = defaultdict(list)
    ours = sorted(ours, key=lambda o: o.at)
    matched = []
    at = 0
    for commit in sorted((c for c in repository.commits if not c.is_merge), key=lambda c: c.committed_at):
        until = commit.committed_at + _SECOND_US - 1
        while at < len(ours) and ours[at].at <= until:
            waiting[ours[at].path].append(ours[at])
            at += 1
        touched = [o for f in repository.history.get(commit.sha, ()) for o in waiting.pop(f.path, ())]
        who = frozenset(o.session_id for o in touched if o.at >= until - RECENT_US)
        if who:
            matched.append(Point(commit, who, "by_files", (), until))
    return matched
