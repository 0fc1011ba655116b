"""One cause at a time, laid into ordinary sessions; each gives the sessions it was laid into and what must be said."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.plants.work import Act, Work, an_edit, listing, paths, pushback

MONEY = "Where did the money go?"
TWICE = "Which work is done, and paid for, more than once?"
FEW = "Do a few sessions make up most of the cost?"
FAILS = "Which tool calls fail most often, and do they succeed later?"
CIRCLES = "Where do agents repeat the same failing call?"
CHECKED = "Did agents test their last change?"
PUSHBACK = "Where do I object to or correct agents?"
PLACES = "Which files are changed in most sessions (hotspots)?"


@dataclass(kw_only=True)
class Plant:
    """What was laid in: the questions that the first sentence may answer, and words that it has to hold."""

    questions: tuple[str, ...]
    words: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


Laid = Callable[[list[Work], random.Random], Plant]


def a_loop(works: list[Work], chance: random.Random) -> Plant:
    """The same failing command again and again, with nothing changed in between."""
    hit = chance.sample(works, 6)
    for work in hit:
        command = chance.choice(("npx tsc --noEmit", "make build", "cargo clippy", "docker build -t web ."))
        failure = "error: cannot find module 'config' in the search path"
        again = [
            Act(kind="shell", wait_s=4, takes_s=9, command=command, result=failure, failed=True)
            for _ in range(chance.randint(10, 18))
        ]
        work.acts[-1:-1] = again
    return Plant(questions=(CIRCLES,), sessions=_ids(hit))


def a_giant_result(works: list[Work], chance: random.Random) -> Plant:
    """A log of 110,000 tokens is printed once at the beginning, and every later call carries it along."""
    hit = chance.sample(works, 3)
    for work in hit:
        log = "\n".join(f"2026-04-06T08:{n % 60:02} worker {n}: took job {n * 7919 % 10_007}, ok" for n in range(9_000))
        work.acts.insert(1, Act(kind="shell", command="cat logs/worker.log", result=log))
        for _ in range(15):
            path = chance.choice(paths(work.repository))
            work.acts.append(Act(kind="search", text=f"job_{chance.randrange(9999)}", result=f"{path}:7: job"))
        work.acts.append(Act(kind="say", text="The log shows no failed job."))
    return Plant(questions=(MONEY, FEW), sessions=_ids(hit))


def a_failing_tool(works: list[Work], chance: random.Random) -> Plant:
    """One tool fails in most of its calls, each of them another call."""
    tool = chance.choice(("mcp__tracker__find_ticket", "WebFetch", "mcp__browser__open_page"))
    agent = "claude-code" if tool == "WebFetch" else chance.choice(("claude-code", "pi"))
    hit = [work for work in works if work.agent == agent]
    for work in hit:
        for _ in range(chance.randint(3, 6)):
            failed = chance.random() < 0.75
            words = f"ticket {chance.randrange(9999)}"
            result = "Error: 503 upstream connect error" if failed else f"{words}: open, assigned to ada"
            at = chance.randrange(1, len(work.acts))
            work.acts.insert(at, Act(kind="tool", tool=tool, text=words, result=result, failed=failed))
    return Plant(questions=(FAILS,), words=(tool,), sessions=_ids(hit))


def an_agent_that_never_tests(works: list[Work], chance: random.Random) -> Plant:
    """One agent changes code and checks nothing; the others check."""
    agent = chance.choice(("claude-code", "codex", "pi"))
    hit = [work for work in works if work.agent == agent]
    for work in hit:
        work.acts = [act for act in work.acts if act.kind != "shell"]
        if not work.edits():
            work.acts.insert(-1, an_edit(chance.choice(paths(work.repository)), chance))
    return Plant(questions=(CHECKED,), words=(agent,), sessions=_ids(hit))


def a_re_reading_agent(works: list[Work], chance: random.Random) -> Plant:
    """One agent reads the same unchanged files again before each step."""
    agent = chance.choice(("claude-code", "codex", "gemini-cli", "pi"))
    hit = [work for work in works if work.agent == agent]
    for work in hit:
        path = chance.choice(paths(work.repository))
        again = Act(kind="read", path=path, result=listing(path, 260))
        for at in range(len(work.acts) - 1, 1, -2):
            work.acts.insert(at, again)
    return Plant(questions=(TWICE,), sessions=_ids(hit))


def a_repository_with_pushback(works: list[Work], chance: random.Random) -> Plant:
    """In one repository most of what the person says after an answer is that it is wrong."""
    repository = chance.choice(sorted({work.repository for work in works}))
    hit = [work for work in works if work.repository == repository]
    for work in hit:
        for act in [act for act in work.acts if act.kind == "prompt"][1:]:
            if chance.random() < 0.7:
                act.text = pushback(chance)
    return Plant(questions=(PUSHBACK,), words=(repository,), sessions=_ids(hit))


def a_pause_that_loses_the_cache(works: list[Work], chance: random.Random) -> Plant:
    """The person comes back after ten minutes to an hour, each time: the whole context is written anew."""
    hit = [work for work in works if work.agent in ("claude-code", "pi")]
    for work in hit:
        for _ in range(2):
            path = chance.choice(paths(work.repository))
            work.acts += [
                Act(kind="prompt", text=f"What does {path} do at its end?"),
                Act(kind="read", path=path, result=listing(path, 200)),
                Act(kind="say", text=f"{path} hands the limit on."),
            ]
        for act in [act for act in work.acts if act.kind == "prompt"][1:]:
            act.wait_s = chance.uniform(600, 3600)
    return Plant(questions=(MONEY,), words=("cache",), sessions=_ids(hit))


def a_hot_file(works: list[Work], chance: random.Random) -> Plant:
    """One file of a repository is changed in nearly all of its sessions, at the same place."""
    repository = chance.choice(sorted({work.repository for work in works}))
    path = chance.choice(paths(repository))
    hit = [work for work in works if work.repository == repository and chance.random() < 0.9]
    for work in hit:
        for at in range(chance.randint(1, 3)):
            reading = Act(kind="read", path=path, result=listing(path, 120))
            work.acts[-1:-1] = (
                [reading, an_edit(path, chance, 40 + at)] if at == 0 else [an_edit(path, chance, 40 + at)]
            )
        check = Act(kind="shell", command="make test", takes_s=5, result="42 passed")
        work.acts.insert(-1, check)
    return Plant(questions=(PLACES,), words=(path,), sessions=_ids(hit))


def _ids(works: list[Work]) -> tuple[str, ...]:
    return tuple(work.session_id for work in works)


CAUSES: tuple[Laid, ...] = (
    a_loop,
    a_giant_result,
    a_failing_tool,
    an_agent_that_never_tests,
    a_re_reading_agent,
    a_repository_with_pushback,
    a_pause_that_loses_the_cache,
    a_hot_file,
)
