"""Sessions as files of Claude Code, Codex, Gemini CLI and Pi, whose model calls are billed by what they were sent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests import demo_stories
from tests.demo_stories import Beat, Story
from tests.plants.tokens import Meter
from tests.plants.work import Act, Work

MODELS = {"claude-code": "claude-sonnet-4-5-20250929", "codex": "gpt-5.1-codex", "gemini-cli": "gemini-2.5-pro",
          "pi": "claude-sonnet-4-5"}  # fmt: skip


def write(folder: Path, works: list[Work]) -> Path:
    """One file a session, under the folder of its agent."""
    for number, work in enumerate(works):
        demo_stories.write(_story(number, work), folder)
    return folder


def _story(number: int, work: Work) -> Story:
    meter, made = Meter(), []
    now, took_s = work.start, 0.0
    beats: list[Beat] = []
    for act in work.acts:
        now += timedelta(seconds=took_s + act.wait_s)
        beats.append(_beat(act, took_s))
        took_s = 0.0
        if act.kind == "prompt":
            meter.add(act.text)
            continue
        made.append(meter.call(now, act.text + act.old + act.new + act.command).logged(work.agent == "pi"))
        if act.kind != "say":
            meter.add(act.result)
            took_s = act.takes_s
    start_us = int(work.start.timestamp() * 1_000_000)
    project = work.repository.encode().hex().ljust(64, "0")
    return Story(number=number, session_id=work.session_id, format=work.agent, model=MODELS[work.agent],
                 repo=work.repository, cwd=work.cwd, branch="main", start_us=start_us, beats=beats, project=project,
                 used=made, stops=True)  # fmt: skip


def _beat(act: Act, took_s: float) -> Beat:
    facts = {name: getattr(act, name) for name in ("text", "path", "command", "tool", "old", "new", "result", "failed")}
    return Beat(kind=act.kind, wait_s=took_s + act.wait_s, takes_s=act.takes_s, start_line=act.line, **facts)
