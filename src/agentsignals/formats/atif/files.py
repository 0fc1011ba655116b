"""The ATIF files of one family, put together into runs: compactions continue one, subagents are threads of it."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.any_agent import ANYBODY
from agentsignals.formats.atif.records import (
    Ref,
    Step,
    Trajectory,
    carried_in,
    decode,
    decode_step,
    refs,
    words,
)
from agentsignals.formats.atif.session import Conversation
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.figures import amount, count
from agentsignals.formats.one_document import each, tally
from agentsignals.formats.one_document import read as read_document
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import MAIN, Session, carried, placement
from agentsignals.model.attempt import Attempt, Statement
from agentsignals.model.carried import OfSession

_DEEPEST = 30
"""Subagents of subagents are told where they were asked for; those still deeper, at the end."""
_COPIED, _UNKNOWN = "copied", "unknown"
_SOURCES = ("user", "agent", "system")


class _File(Struct):
    """One trajectory, in a file or embedded in one."""

    source: Input
    trajectory: Trajectory
    steps: list[Step | None]

    @property
    def path(self) -> str:
        return self.source.artifact.path

    def beside(self, ref: object, files: dict[str, _File]) -> _File | None:
        """The file that this one names: it lies beside it, wherever both were written first. Where files of several
        runs were put into one folder, the two have been given the same prefix.
        """
        name = posixpath.basename(words(ref) or "")
        folder, file_name = posixpath.split(self.path)
        if not name:
            return None
        exact = files.get(posixpath.join(folder, name))
        if exact is not None:
            return exact
        ends = len(name)
        renamed = (f for path, f in files.items() if path.endswith(name) and posixpath.dirname(path) == folder)
        return next((f for f in renamed if file_name.startswith(posixpath.basename(f.path)[:-ends])), None)


def read(inputs: list[Input]) -> Reading:
    """Every run with its session and what its file says of the attempt."""
    reading = Reading()
    files = {f.path: f for f in _files(inputs)}
    parts_of_others = set(_named_by_others(files))
    heads = [f for path, f in sorted(files.items()) if path not in parts_of_others]
    ids = Counter(words(f.trajectory.session_id) for f in heads)
    read_so_far: set[str] = set()
    for head in [*heads, *(f for _, f in sorted(files.items()))]:  # those that only name each other come last
        if head.path in read_so_far:
            continue
        chain = list(_chain(head, files, read_so_far))
        own_id = words(head.trajectory.session_id)
        run = _Run(chain, files, own_id if own_id is not None and ids[own_id] < 2 else "")
        session = run.session(read_so_far)
        reading.sessions.append(session)
        if session.context == "eval":
            reading.attempts.append(run.part())
    return reading


def _files(inputs: list[Input]) -> Iterator[_File]:
    for source in inputs:
        trajectory = read_document(source, decode, "steps")
        if trajectory is not None:
            steps = each(trajectory.steps, decode_step, source.artifact)
            tally(source.artifact, "step", [None if s is None else _kind(s) for s in steps])
            yield _File(source, trajectory, steps)


def _kind(step: Step) -> str:
    if step.is_copied_context is True:
        return _COPIED
    return step.source if isinstance(step.source, str) and step.source in _SOURCES else _UNKNOWN


def _named_by_others(files: dict[str, _File]) -> Iterator[str]:
    """The files that belong to the run of another one."""
    for file in files.values():
        named = [file.beside(file.trajectory.continued_trajectory_ref, files), *_referred(file, files)]
        yield from (other.path for other in named if other is not None and other is not file)


def _referred(file: _File, files: dict[str, _File]) -> list[_File | None]:
    """The files that a trajectory's results came from; None for those that are embedded or not there."""
    return [_file_of(ref, file, files) for step in file.steps if step is not None for ref in refs(step)]


def _file_of(ref: Ref, file: _File, files: dict[str, _File]) -> _File | None:
    """By its path; before 1.7 a session id was enough, where it names one other file of the folder."""
    if words(ref.trajectory_path) is not None:
        return file.beside(ref.trajectory_path, files)
    wanted = words(ref.session_id)
    if wanted is None or words(ref.trajectory_id) is not None or wanted == words(file.trajectory.session_id):
        return None
    folder = posixpath.dirname(file.path)
    beside = [f for f in files.values() if posixpath.dirname(f.path) == folder and f.trajectory.session_id == wanted]
    return beside[0] if len(beside) == 1 else None


def _chain(head: _File, files: dict[str, _File], read_so_far: set[str]) -> Iterator[_File]:
    """A run's files in order."""
    file: _File | None = head
    while file is not None and file.path not in read_so_far:
        read_so_far.add(file.path)
        yield file
        file = file.beside(file.trajectory.continued_trajectory_ref, files)


class _Run:
    """One run of an agent, from its files."""

    def __init__(self, chain: list[_File], files: dict[str, _File], session_id: str) -> None:
        self.chain = chain
        self.files = files
        head = chain[0]
        self.agent = head.trajectory.agent
        name = words(self.agent.name) if self.agent is not None else None
        version = words(self.agent.version) if self.agent is not None else None
        artifact_id = head.source.artifact.artifact_id
        self.builder = SessionBuilder(
            Session(session_id=session_id, context="eval", format="atif", agent=name or "", artifact_id=artifact_id),
            ANYBODY,
        )
        self.builder.session.agent_version = None if version == "unknown" else version
        self.builder.session.repo = head.source.repo_hint
        self.model = words(self.agent.model_name) if self.agent is not None else None
        self.carried = carried_in(head.trajectory.extra)
        self.facts = carried.read(self.carried, OfSession)
        if self.facts is not None:
            self.builder.where(self.facts.cwd, self.facts.branch)
        self._names: Counter[str] = Counter()
        self._depth = 0

    def session(self, read_so_far: set[str]) -> Session:
        talk = Conversation(self.builder, self.model, is_ours=self.facts is not None)
        embedded: dict[str, _File] = {}
        for file in self.chain:
            self._embedded(file, embedded)
        for n, file in enumerate(self.chain):
            talk.goes_on = n > 0
            self._take(talk, file, MAIN)
            self._subagents(talk, file, embedded, read_so_far)
        while embedded:
            name = next(iter(embedded))
            self._thread(talk, embedded.pop(name), name, embedded, read_so_far)
        session = self.builder.finish()
        placement.put_back(session, self.carried)
        carried.restore(session, self.facts)
        return session

    def _take(self, talk: Conversation, file: _File, thread: str) -> None:
        self.builder.artifact_id = file.source.artifact.artifact_id
        for number, step in enumerate(file.steps, 1):
            self.builder.line = number
            if step is not None:
                talk.take(step, thread)

    def _subagents(self, talk: Conversation, file: _File, embedded: dict[str, _File], read_so_far: set[str]) -> None:
        """The threads that results of this file came from, behind it."""
        asked, talk.subagents = talk.subagents, []
        for ref in asked if self._depth < _DEEPEST else ():
            name = words(ref.trajectory_id)
            if name is not None and name in embedded:
                self._thread(talk, embedded.pop(name), name, embedded, read_so_far)
                continue
            other = _file_of(ref, file, self.files)
            if other is not None and other.path not in read_so_far:
                read_so_far.add(other.path)
                thread = words(other.trajectory.trajectory_id) or posixpath.splitext(posixpath.basename(other.path))[0]
                self._thread(talk, other, thread, embedded, read_so_far)

    def _thread(
        self, talk: Conversation, file: _File, name: str, embedded: dict[str, _File], read_so_far: set[str]
    ) -> None:
        turn, self.builder.turn_index = self.builder.turn_index, None
        own_model = words(file.trajectory.agent.model_name) if file.trajectory.agent is not None else None
        main_model, talk.model = talk.model, own_model or talk.model
        self._embedded(file, embedded)
        self._take(talk, file, name)
        talk.model = main_model
        self._depth += 1
        self._subagents(talk, file, embedded, read_so_far)
        self._depth -= 1
        self.builder.turn_index = turn

    def _embedded(self, file: _File, files: dict[str, _File]) -> None:
        """Adds the trajectories embedded in this one, by name; those without one are numbered."""
        for raw in file.trajectory.subagent_trajectories or ():
            trajectory = _decoded(raw)
            if trajectory is None:
                tally(file.source.artifact, "subagent_step", [None])
                continue
            steps = each(trajectory.steps, decode_step, file.source.artifact)
            tally(file.source.artifact, "subagent_step", [None if s is None else _kind(s) for s in steps])
            name = words(trajectory.trajectory_id) or words(trajectory.session_id) or "subagent"
            self._names[name] += 1
            files[name if self._names[name] == 1 else f"{name}#{self._names[name]}"] = _File(
                file.source, trajectory, steps
            )

    def part(self) -> Attempt:
        """What the run's files say of it. Their totals go on through continuations: the last are the run's."""
        head = self.chain[0]
        session = self.builder.session
        totals = next((f.trajectory.final_metrics for f in reversed(self.chain) if f.trajectory.final_metrics), None)
        efforts = {e for f in self.chain for s in f.steps if s is not None and (e := words(s.reasoning_effort))}
        settings = {"agent_type": session.agent or None, "model_id": self.model}
        settings["reasoning_effort"] = efforts.pop() if len(efforts) == 1 else None
        observed = {name: value for name, value in settings.items() if value is not None}
        summary = ", ".join(f"{name} {value}" for name, value in observed.items())
        part = Attempt(
            root=posixpath.dirname(head.path) if self.facts is None else head.path,
            session_artifact=head.source.artifact.artifact_id,
            session_id=session.session_id or None,
            observed=observed,
        )
        fields = [f"knobs.{name}" for name in observed]
        if totals is not None:
            part.input_tokens = count(totals.total_prompt_tokens)
            part.output_tokens = count(totals.total_completion_tokens)
            part.cache_read_tokens = count(totals.total_cached_tokens)
            part.cost_usd = amount(totals.total_cost_usd)
            fields += ["input_tokens", "output_tokens", "cache_read_tokens", "cost_usd"]
            summary += f", totals {msgspec.json.encode(totals).decode()}"
        statement = f"{head.trajectory.schema_version}: {summary}"
        part.statements = [
            Statement(text=statement, artifact_id=head.source.artifact.artifact_id, line=1, fields=fields)
        ]
        return part


def _decoded(raw: Raw) -> Trajectory | None:
    try:
        return decode(memoryview(raw))
    except UNREADABLE:
        return None
