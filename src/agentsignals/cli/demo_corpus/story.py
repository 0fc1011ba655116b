"""Made-up sessions, the same every time: what a person asked and what an agent did, before any format."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

START_US = 1_772_442_000_000_000  # Monday 2026-03-02, 09:00 UTC
SESSIONS = 36

Kind = Literal["prompt", "think", "say", "read", "search", "edit", "shell", "reject", "interrupt"]


class Beat(Struct, kw_only=True):
    """One thing that happens, `wait_s` after the one before."""

    kind: Kind
    wait_s: float
    text: str = ""
    path: str = ""
    command: str = ""
    old: str = ""
    new: str = ""
    start_line: int = 1
    result: str = ""
    failed: bool = False


class Story(Struct, kw_only=True):
    """One session, before it is written in an agent's format."""

    number: int
    session_id: str
    format: str
    model: str
    repo: str
    cwd: str
    branch: str
    start_us: int
    beats: list[Beat]


_REPOS = {
    "orchard": ("src/orchard/pricing.py", "src/orchard/basket.py", "src/orchard/cli.py", "tests/test_pricing.py"),
    "lantern": ("app/routes/login.ts", "app/session.ts", "app/components/Header.tsx", "app/session.test.ts"),
    "gearbox": (
        "internal/queue/worker.go",
        "internal/queue/retry.go",
        "cmd/gearbox/main.go",
        "internal/queue/retry_test.go",
    ),
}
_TESTS = {"orchard": "python -m pytest tests -q", "lantern": "npm test", "gearbox": "go test ./..."}
_AGENTS = (
    ("claude-code", "claude-opus-4-5-20251101"),
    ("claude-code", "claude-sonnet-4-5-20250929"),
    ("codex", "gpt-5.1-codex"),
    ("pi", "claude-sonnet-4-5"),
    ("gemini-cli", "gemini-2.5-pro"),
)
_OPENINGS = (
    "The total in {path} is off by one cent when a discount applies. Find out why and fix it, with a test.",
    "Can you add a retry with backoff to {path}? It should give up after five tries.",
    "{path} crashes with a KeyError on an empty list, please look into it",
    "Refactor {path} so that the parsing and the writing are two functions.",
    "fix the login bug",
    "Please review {path} and tell me what you would simplify.",
)
_FOLLOW_UPS = (
    "no, that's not right: the rounding happens before the tax",
    "still failing, same error",
    "great, commit this",
    "you forgot the second call site",
    "now update the docs too",
    "why did you change the signature?",
    "run the tests again",
    "yes",
    "thanks, looks good",
)


def stories() -> Iterator[Story]:
    """All sessions of the demo."""
    chance = random.Random(20260302)  # noqa: S311  (made-up data, the same every time)
    for number in range(SESSIONS):
        yield _story(number, chance)


def _story(number: int, chance: random.Random) -> Story:
    repo = chance.choice(sorted(_REPOS))
    format_name, model = _AGENTS[number % len(_AGENTS)]
    beats: list[Beat] = []
    for turn in range(chance.choice((1, 1, 2, 3, 3, 4, 6, 9))):
        path = chance.choice(_REPOS[repo])
        beats.append(Beat(kind="prompt", wait_s=chance.uniform(20, 400), text=_asked(turn, path, chance)))
        beats += _response(repo, path, turn, chance)
    start = START_US + number * 86_400_000_000 * 5 // 6 + chance.randrange(6 * 3600) * 1_000_000
    return Story(
        number=number,
        session_id=str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        format=format_name,
        model=model,
        repo=repo,
        cwd=f"/home/dev/{repo}",
        branch="main" if chance.random() < 0.6 else f"work/{number}",
        start_us=start,
        beats=beats,
    )


def _asked(turn: int, path: str, chance: random.Random) -> str:
    return chance.choice(_OPENINGS).format(path=path) if turn == 0 else chance.choice(_FOLLOW_UPS)


def _response(repo: str, path: str, turn: int, chance: random.Random) -> list[Beat]:
    beats = [
        Beat(kind="think", wait_s=3, text=f"The request is about {path}. I should read it before I change anything.")
    ]
    for other in chance.sample(_REPOS[repo], chance.randint(1, 3)):
        beats.append(
            Beat(kind="read", wait_s=2, path=other, result="\n".join(f"{n}\tline {n} of {other}" for n in range(1, 40)))
        )
    if chance.random() < 0.5:
        beats.append(Beat(kind="search", wait_s=2, text="discount", path="", result=f"{path}:12: discount = 0"))
    if chance.random() < 0.12:
        beats.append(Beat(kind="interrupt", wait_s=4))
        return beats
    for n in range(chance.randint(0, 3)):
        beats.append(_edit(path, turn, n, chance))
        if chance.random() < 0.08:
            beats[-1] = Beat(
                kind="reject", wait_s=5, text="keep the old name, only change the body", path=path, old="a", new="b"
            )
            return beats
        failed = chance.random() < 0.35
        output = "2 failed, 31 passed" if failed else "33 passed in 1.20s"
        beats.append(Beat(kind="shell", wait_s=6, command=_TESTS[repo], result=output, failed=failed))
    if chance.random() < 0.3:
        beats.append(
            Beat(
                kind="shell",
                wait_s=2,
                command='git commit -am "Fix it"',
                result="[main 1a2b3c4] Fix it\n 1 file changed",
            )
        )
    beats.append(
        Beat(
            kind="say",
            wait_s=3,
            text=f"I changed {path} and ran the tests. The total is now rounded once, after the tax.",
        )
    )
    return beats


def _edit(path: str, turn: int, n: int, chance: random.Random) -> Beat:
    line = chance.randint(5, 30)
    old = f"    value_{turn} = compute({line})\n"
    new = old + f"    value_{turn} = round_once(value_{turn}, {n})\n"
    failed = chance.random() < 0.06
    result = "String to replace not found in file." if failed else "The file has been updated."
    return Beat(kind="edit", wait_s=5, path=path, old=old, new=new, start_line=line, result=result, failed=failed)


def clock(story: Story) -> Iterator[tuple[int, Beat]]:
    """Each beat with its time in microseconds."""
    at = story.start_us
    for beat in story.beats:
        at += int(beat.wait_s * 1_000_000)
        yield at, beat


def usage(number: int) -> dict[str, Any]:
    """Token counts of the n-th model call of a session: a context that grows, nearly all of it cached."""
    return {"input": 12, "output": 90 + number % 7 * 35, "cache_read": 14_000 + number * 900, "cache_write": 850}
