"""Stores of made-up work: ordinary sessions of several agents, into which one cause of trouble may be laid.

Knows formats and the model only: nothing here looks at how trouble is found. What is ordinary is drawn: sizes of
results, answers, sessions; now and then a failing test, a correction, a long pause, a file read again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentsignals.formats.builder import SessionBuilder
from agentsignals.ingest.attempts import attach_attempts
from agentsignals.model import Attempt, Session
from tests.build import START, profile


class Agent(NamedTuple):
    """An agent and the names of its tools."""

    format: str
    model: str
    read: str
    edit: str
    shell: str


AGENTS = (
    Agent("claude-code", "claude-opus-4-5", "Read", "Edit", "Bash"),
    Agent("pi", "claude-sonnet-4-5", "read", "edit", "bash"),
    Agent("opencode", "claude-haiku-4-5", "read", "edit", "bash"),
)
PLACES = ("acme/shop", "acme/api", "acme/docs-site", "acme/infra")
FILES = tuple(
    f"src/{folder}/{name}.py" for folder in ("core", "web", "db", "jobs") for name in ("a", "b", "c", "d", "e")
)
SECOND = 1_000_000
DAY = 86_400 * SECOND
TASKS = (
    "add a flag that turns the cache off", "rename the field in the form", "make the importer skip empty rows",
    "write a test for the parser of dates", "move the settings into one module", "log how long each job takes",
)  # fmt: skip
CALM = ("now do the same for the other module", "please commit this", "thanks, and update the docstring", "continue")
OBJECTIONS = ("no, that's not what I asked for", "that is wrong, use the other function instead", "no, don't do that")


class Trouble(NamedTuple):
    """What is laid into a store; each says how often, of the sessions it is laid into."""

    circles: float = 0.0
    """Sessions of the first agent with a long run of one failing call."""
    runaway: bool = False
    """Two sessions go on without end."""
    failing_tool: float = 0.0
    """How often a tool fails in the first place."""
    never_tests: bool = False
    """The second agent runs no test."""
    reads_again: int = 0
    """How often files are read again with nothing changed."""
    objections: float = 0.0
    """Later prompts of the first place that object."""
    pauses: float = 0.0
    """Prompts that come half an hour later."""
    hot_file: float = 0.0
    """Sessions of the first place that change one file."""


PLANTED: dict[str, Trouble] = {
    "a loop": Trouble(circles=0.8),
    "a runaway cost": Trouble(runaway=True),
    "a failing tool": Trouble(failing_tool=0.7),
    "an agent that never tests": Trouble(never_tests=True),
    "a re-reading agent": Trouble(reads_again=3),
    "a repository with pushback": Trouble(objections=0.7),
    "pauses that lose the cache": Trouble(pauses=0.7),
    "a hot file": Trouble(hot_file=0.95),
}


class _Making:
    """One session as it goes on."""

    def __init__(self, rng: random.Random, number: int, agent: Agent, place: str) -> None:
        self.rng, self.agent = rng, agent
        self.session = Session(
            session_id=f"{number:04x}-{rng.getrandbits(32):08x}", context="product", format=agent.format,
            agent=agent.format, artifact_id="a1", repo=place, cwd=f"/work/{place}", branch="main", model=agent.model,
        )  # fmt: skip
        self.session.conventions = list(profile(agent.format).conventions)
        self.builder = SessionBuilder(self.session)
        self.builder.where(self.session.cwd)
        self.at = START + number * DAY // 4
        self.context = 0
        self.grown = rng.randint(12_000, 22_000)
        self.edited = 0
        self.seen: set[str] = set()

    def passes(self, seconds: float) -> None:
        self.at += int(seconds * SECOND)

    def says(self, text: str) -> None:
        self.grown += 30
        self.builder.turn("prompt", text, self.at)

    def step(self, lost: bool = False) -> None:
        """A model call: what it was sent before comes from the cache, unless that is gone."""
        self.passes(self.rng.uniform(3, 12))
        made = self.builder.step(None, self.agent.model, self.at)
        read = 0 if lost else self.context
        made.input_tokens, made.cache_read_tokens = 10, read
        made.cache_write_tokens = self.context - read + self.grown
        made.stop_reason = "end_turn"
        made.output_tokens = int(self.rng.lognormvariate(5.5, 0.7))
        self.context += self.grown
        self.grown = made.output_tokens
        self.builder.event("text", "I look at it.", self.at, made)
        self.made = made

    def call(self, name: str, result: str, ok: bool = True, **arguments: str) -> None:
        tool = profile(self.agent.format).tool(name)
        call_id = f"c{len(self.session.tool_calls)}"
        made = self.builder.call(call_id, name, json.dumps(arguments), tool, self.at, self.made)
        self.passes(self.rng.uniform(0.1, 3))
        self.builder.result(call_id, result, "ok" if ok else "error", self.at)
        self.grown += len(result) // 4
        if ok and made.class_ == "edit":
            self.builder.edit(made, made.path, "modify", [])

    def reads(self, path: str, again: int = 0) -> None:
        text = f"{path} " + "x = 1\n" * int(self.rng.lognormvariate(6.0, 0.5))
        for _ in range(1 + again):
            self.step()
            self.call(self.agent.read, text, file_path=path, path=path, filePath=path)
        self.seen.add(path)

    def edits(self, path: str) -> None:
        self.step()
        self.edited += 1
        text = f"{path} changed"
        self.call(self.agent.edit, text, file_path=path, path=path, filePath=path, new_string=f"y = {self.edited}")

    def runs(self, command: str, ok: bool = True) -> None:
        self.step()
        self.call(self.agent.shell, "ok" if ok else "Exit code 1\nFAILED: it does not", ok, command=command)


def ordinary(seed: int, sessions: int = 48, trouble: Trouble | None = None) -> list[Session]:
    """So many sessions, all agents in all places alike; with trouble, where there is some."""
    rng = random.Random(seed)  # noqa: S311  (made-up work, no secret)
    trouble = trouble or Trouble()
    return [_session(rng, number, trouble) for number in range(sessions)]


def _session(rng: random.Random, number: int, trouble: Trouble) -> Session:
    agent, place = AGENTS[number % len(AGENTS)], PLACES[number // len(AGENTS) % len(PLACES)]
    is_first_agent, is_first_place = agent is AGENTS[0], place == PLACES[0]
    making = _Making(rng, number, agent, place)
    turns = 60 if trouble.runaway and number in (7, 23) else rng.randint(2, 5)
    for turn in range(turns):
        paused = turn > 0 and rng.random() < max(trouble.pauses, 0.02)
        making.passes(1800 if paused else rng.uniform(20, 200))
        objecting = trouble.objections if is_first_place else 0.06
        making.says(rng.choice(TASKS if not turn else OBJECTIONS if rng.random() < objecting else CALM))
        if paused:
            making.step(lost=True)
        for path in rng.sample(FILES, rng.randint(1, 3)):
            making.reads(path, trouble.reads_again if path not in making.seen else 0)
        for path in rng.sample(FILES, rng.randint(1, 2)):
            making.edits(path)
        if is_first_place and not turn and rng.random() < trouble.hot_file:
            making.edits("src/core/routes.py")
        if rng.random() < 0.7:
            making.runs("./deploy.sh", ok=rng.random() >= (trouble.failing_tool if is_first_place else 0.06))
        if not (trouble.never_tests and agent is AGENTS[1]):
            while rng.random() < 0.85:
                works = rng.random() < 0.85
                making.runs(f"pytest -q -k case{rng.randint(0, 99)}", ok=works)
                if works:
                    break
                making.edits(rng.choice(FILES))
        if is_first_agent and not turn and rng.random() < trouble.circles:
            for _ in range(rng.randint(6, 15)):
                making.runs("make generate", ok=False)
        making.step()
    return making.builder.finish()


def evaluated(
    seed: int, outage: float = 0.02, tasks: Sequence[Sequence[int]] = (range(30), range(30))
) -> list[Session]:
    """Attempts of two equally good models at tasks. `outage`: how many of them the environment breaks off."""
    rng = random.Random(seed)  # noqa: S311  (made-up work, no secret)
    hard = {task: rng.random() for side in tasks for task in side}
    made: list[Session] = []
    for model, side in zip(("claude-opus-4-5", "gpt-5.1-codex"), tasks, strict=True):
        for task in side:
            broken = rng.random() < outage
            attempt = Attempt(
                root=f"/runs/{model}/{task}", task_id=f"task-{task}", attempt_index=0, run_id="r1",
                knobs={"model_id": model, "agent_type": "pi", "dataset": "made-up"},
                ending="infrastructure" if broken else "finished",
                exception="DockerTimeoutError" if broken else None,
                reward=float(rng.random() > 0.2 + 0.6 * hard[task]),
            )  # fmt: skip
            made += attach_attempts([], [attempt], {})
    return made


STORES: dict[str, Callable[[int], list[Session]]] = {
    **{name: lambda seed, trouble=trouble: ordinary(seed, trouble=trouble) for name, trouble in PLANTED.items()},
    "an infra outage": lambda seed: evaluated(seed, outage=0.3),
    "an unequal comparison": lambda seed: evaluated(seed, tasks=(range(30), range(28, 58))),
}
"""The planted stores by cause: sessions by seed."""
