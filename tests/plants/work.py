"""Ordinary work of a person with coding agents: what is asked, read, changed, checked, before any file format."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

START = datetime(2026, 4, 6, 8, 0, tzinfo=UTC)
AGENTS = ("claude-code", "codex", "gemini-cli", "pi")
REPOSITORIES = {"harvest": "py", "beacon": "ts", "quarry": "go"}
CHECKS = {"py": "pytest -q", "ts": "npm test", "go": "go test ./..."}
_FOLDERS = ("core", "api", "store", "jobs", "mail", "auth")
_NAMES = ("parser", "client", "schema", "router", "limits", "session", "writer", "worker")
_TASKS = (
    "Add a --dry-run flag to the importer that prints what would be written.",
    "Requests to /export time out for large accounts. Find the cause and mend it.",
    "Move the validation of addresses in {path} into a function by itself.",
    "Write a test for the empty case in {path}.",
    "Let {path} accept ISO dates as well as timestamps, and document it.",
    "The nightly job sends its summary twice. Please find out why.",
    "Upgrade the logging in {path} so that every line carries the request id.",
)
_MORE = (
    "Now do the same for {path}.",
    "Add a line about this to the changelog.",
    "Which other callers of this function are there?",
    "Please also handle the case in which the list is empty.",
    "Good. Next, make the limit configurable.",
    "Can you show me how the retry is tested?",
    "Looks good, commit it.",
)
_PUSHBACK = (
    "No, that's wrong. I asked you not to change the public interface.",
    "That is not what I asked for, revert it.",
    "This is still broken, you didn't fix the actual bug.",
    "Wrong again: the limit has to be checked before the write. Undo that.",
    "No. Stop adding new files, I told you to edit the existing one.",
)


@dataclass(kw_only=True)
class Act:
    """One thing that a person or an agent does, `wait_s` after what came before; a call's result takes `takes_s`."""

    kind: str
    """prompt, say, read, search, edit, shell, or tool (any other)"""
    wait_s: float = 3.0
    takes_s: float = 1.0
    text: str = ""
    path: str = ""
    command: str = ""
    tool: str = ""
    old: str = ""
    new: str = ""
    line: int = 1
    result: str = ""
    failed: bool = False


@dataclass(kw_only=True)
class Work:
    """A session before it is written: who worked where, and what happened."""

    agent: str
    repository: str
    start: datetime
    session_id: str
    acts: list[Act] = field(default_factory=list)

    @property
    def cwd(self) -> str:
        return f"/home/ada/{self.repository}"

    def edits(self) -> list[int]:
        """Where the edits stand among the acts."""
        return [n for n, act in enumerate(self.acts) if act.kind == "edit"]


def paths(repository: str) -> list[str]:
    """The files of a repository."""
    ending = REPOSITORIES[repository]
    return [f"{folder}/{name}.{ending}" for folder in _FOLDERS for name in _NAMES]


def listing(path: str, lines: int) -> str:
    """What reading a file shows."""
    return "\n".join(
        f"{n}\t    {path.split('/')[1]}_{n} = step_{n % 17}(value_{n % 5}, limit)" for n in range(1, lines)
    )


def ordinary(seed: int, sessions: int) -> list[Work]:
    """Sessions of four agents in three repositories in which nothing stands out."""
    chance = random.Random(seed)  # noqa: S311  (made-up data, the same every time)
    made = []
    for number in range(sessions):
        start = START + timedelta(days=number * 40 / sessions, hours=chance.uniform(0, 9))
        work = Work(
            agent=AGENTS[number % len(AGENTS)],
            repository=chance.choice(sorted(REPOSITORIES)),
            start=start,
            session_id=str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        )
        for turn in range(chance.choice((2, 2, 3, 3, 4, 5))):
            work.acts += one_turn(work.repository, turn, chance)
        made.append(work)
    return made


def one_turn(repository: str, turn: int, chance: random.Random) -> Iterator[Act]:
    """A prompt and what the agent does about it."""
    here = chance.sample(paths(repository), 4)
    asked = chance.choice(_TASKS if turn == 0 else _MORE).format(path=here[0])
    if turn and chance.random() < 0.05:
        asked = chance.choice(_PUSHBACK)
    yield Act(kind="prompt", wait_s=0 if turn == 0 else chance.uniform(20, 200), text=asked)
    if chance.random() < 0.7:
        pattern = chance.choice(("limit", "retry", "parse_date", "request_id", "Address")) + str(chance.randrange(99))
        hits = "\n".join(f"{p}:{chance.randint(3, 90)}: {pattern} = step_3(value, limit)" for p in here)
        yield Act(kind="search", text=pattern, result=hits)
    changed = here[: chance.choice((0, 1, 1, 2))]
    for path in [*changed, *here[2 : 2 + chance.choice((0, 1, 1, 2))]]:
        missing = chance.random() < 0.03
        result = "File does not exist." if missing else listing(path, chance.randint(40, 220))
        yield Act(kind="read", path=path, result=result, failed=missing)
    for path in changed:
        yield an_edit(path, chance)
    if changed:
        yield from a_check(repository, changed[-1], chance)
    yield Act(kind="say", wait_s=4, text=f"Done: {asked[:40]} The change is small. " + "It is as asked. " * 6)


def an_edit(path: str, chance: random.Random, line: int | None = None) -> Act:
    """A few lines changed in a file."""
    at = chance.randint(5, 150) if line is None else line
    old = f"    limit_{at} = step_{at % 17}(value)\n"
    new = f"    limit_{at} = step_{at % 17}(value, {chance.randint(1, 999)})\n    log.debug('limit %s', limit_{at})\n"
    result = f"The file {path} has been updated."
    return Act(kind="edit", path=path, old=old, new=new, line=at, result=result)


def a_check(repository: str, path: str, chance: random.Random) -> Iterator[Act]:
    """Tests after an edit: they pass, or fail once, are mended, and pass."""
    command = CHECKS[REPOSITORIES[repository]]
    if chance.random() < 0.15:
        failure = f"FAILED {path}: expected {chance.randint(1, 9)}, got {chance.randint(10, 99)}\n1 failed, 41 passed"
        yield Act(kind="shell", command=command, takes_s=chance.uniform(4, 20), result=failure, failed=True)
        yield an_edit(path, chance)
    yield Act(kind="shell", command=command, takes_s=chance.uniform(4, 20), result="42 passed in 3.1s")


def pushback(chance: random.Random) -> str:
    """What a person says who does not get what was asked for."""
    return chance.choice(_PUSHBACK)
