"""Stories of people and agents in one repository: real Git, transcripts and checkpoints, and who typed which line."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from agentsignals.ingest.collection import attribute_repository
from agentsignals.repositories.attribute import Attribution
from agentsignals.store import Store
from tests.claude import START, Log, stamp

TRAILER = "Entire-Checkpoint"


def block(name: str, n: int, indent: str = "") -> str:
    """`n` lines that occur nowhere else."""
    return "".join(f"{indent}{name}_{k} = compute({name!r}, {k})\n" for k in range(n))


@dataclass
class Score:
    """Added lines by what is true of them and what the tags say."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    human_as_agent: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.right / max(self.right + len(self.wrong), 1)


class Story:
    """A repository, a clock, and what everybody did. Truth is by text: a line is whose `own` says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "repo"
        self.now = START
        self.agents: list[Agent] = []
        self.checkpoints: list[dict[str, str]] = []
        self.own: dict[str, str] = {}
        self.root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str, at: Path | None = None) -> str:
        self.now += timedelta(seconds=1)
        when = f"{int(self.now.timestamp())} +0000"
        who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(
            ["git", "-C", str(at or self.root), *words], capture_output=True, env=os.environ | who | dates, check=True
        )
        return done.stdout.decode().strip()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def text(self, path: str, at: Path | None = None) -> str:
        return ((at or self.root) / path).read_text("utf-8")

    def put(self, path: str, text: str, at: Path | None = None) -> None:
        target = (at or self.root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())

    def are(self, owner: str, text: str) -> str:
        """Says whose these lines are."""
        for line in text.splitlines():
            self.own[line.strip()] = owner
        return text

    def human(self, path: str, text: str, at: Path | None = None) -> None:
        """A person writes the whole file, in three minutes."""
        self.wait(180)
        self.put(path, text, at)

    def agent(self, name: str, at: Path | None = None, cwd: str | None = None) -> Agent:
        made = Agent(self, name, at or self.root, cwd)
        self.agents.append(made)
        return made

    def begun(self, lines: int) -> Story:
        """A first commit: `app.py` with so many old lines."""
        self.human("app.py", block("old", lines))
        self.commit("base")
        return self

    def commit(self, message: str, *agents: Agent, at: Path | None = None, add: str = "-A") -> str:
        """A commit; with agents it carries the name of a checkpoint of their sessions."""
        self.git("add", "--", *([add] if add != "-A" else ["."]), at=at)
        checkpoint_id = hashlib.sha256(f"{message}{len(self.checkpoints)}".encode()).hexdigest()[:12]
        words = ["commit", "--quiet", "-m", message]
        if agents:
            words += ["-m", f"{TRAILER}: {checkpoint_id}"]
        self.git(*words, at=at)
        for one in agents:
            self.checkpoints.append({"id": checkpoint_id, "session": one.log.session, "at": stamp(self.now)})
        return self.git("rev-parse", "HEAD", at=at)

    def publish(self) -> None:
        """The checkpoint branch, with the whole transcript of each session."""
        tree = self.folder / "tree"
        logs = {a.log.session: a.log for a in self.agents}
        count: dict[str, int] = {}
        for one in self.checkpoints:
            n = count[one["id"]] = count.get(one["id"], -1) + 1
            place = tree / one["id"][:2] / one["id"][2:] / str(n)
            place.mkdir(parents=True)
            told = {"checkpoint_id": one["id"], "session_id": one["session"], "created_at": one["at"]}
            (place / "metadata.json").write_text(json.dumps(told))
            (place / "full.jsonl").write_bytes(logs[one["session"]].data())
        index = {"GIT_INDEX_FILE": str(self.folder / "index"), "GIT_WORK_TREE": str(tree)}
        env = os.environ | index | {"GIT_DIR": str(self.root / ".git")}
        who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        run = lambda *w: subprocess.run(["git", *w], env=env | who, cwd=tree, check=True, capture_output=True).stdout  # noqa: E731
        run("add", "-A")
        oid = run("write-tree").decode().strip()
        commit = run("commit-tree", oid, "-m", "checkpoints").decode().strip()
        run("update-ref", "refs/heads/entire/checkpoints/v1", commit)

    def attributed(self) -> Attribution:
        self.publish()
        return attribute_repository(str(self.root), self.folder / "store", jobs=1)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the store answers."""
        return Store(self.folder / "store").sql(query).fetchall()

    def tags(self) -> dict[tuple[str, str, int], str]:
        """(commit's subject, path, line) to tag."""
        query = "SELECT subject, path, line, tag FROM line_attribution JOIN commits USING (repo, commit_sha)"
        return {(str(r[0]), str(r[1]), int(r[2])): str(r[3]) for r in self.rows(query)}

    def score(self) -> Score:
        """Every added line of the attributed commits against the truth."""
        told = Score()
        subjects = {
            s.split(" ", 1)[1]: s.split(" ", 1)[0] for s in self.git("log", "--all", "--format=%H %s").splitlines()
        }
        for (subject, path, line), tag in sorted(self.tags().items()):
            text = self.git("show", f"{subjects[subject]}:{path}").splitlines()[line - 1].strip()
            owner = self.own.get(text)
            if owner is None:
                continue
            said = f"{subject}: {path}:{line} {text[:60]!r} is {owner}, tagged {tag}"
            if _says(tag) == owner:
                told.right += 1
            else:
                told.wrong.append(said)
            if owner == "human" and tag.startswith("agent"):
                told.human_as_agent.append(said)
        return told


def _says(tag: str) -> str:
    return "agent" if tag.startswith("agent") else "human" if tag == "human_observed" else tag


class Agent:
    """A session of an agent in a working tree."""

    def __init__(self, story: Story, name: str, at: Path, cwd: str | None) -> None:
        self.story = story
        self.at = at
        number = hashlib.sha256(name.encode()).hexdigest()
        session = f"{number[:8]}-0000-4000-8000-{number[8:20]}"
        self.log = Log(session, name, cwd=cwd or str(at))

    def __enter__(self) -> Agent:
        """A turn: a person asks, and at its end the agent says that it is done."""
        self.prompt()
        return self

    def __exit__(self, *_: object) -> None:
        self.say()

    def prompt(self, text: str = "please") -> None:
        """A person asks, having taken a minute to think."""
        self.story.wait(60)
        self._now()
        self.log.user(text)
        self._then()

    def edit(self, path: str, old: str, new: str, tool: str = "Edit", **more: object) -> None:
        text = self.story.text(path, self.at)
        assert old in text, "an edit tool would refuse"
        self._now()
        self.log.ran(tool, file_path=str(self.at / path), old_string=old, new_string=new, **more)
        self.story.put(path, text.replace(old, new, -1 if more.get("replace_all") else 1), self.at)
        self._then()

    def adds(self, path: str, before: str, name: str, lines: int) -> None:
        """Lines of its own in front of the line that begins so, which stays who wrote it before."""
        old = f"{before} = "
        line = next(x for x in self.story.text(path, self.at).splitlines() if x.startswith(old))
        self.edit(path, old, self.story.are("agent", block(name, lines)) + old)
        self.story.own[line] = "preexisting"

    def side_edit(self, path: str, old: str, new: str) -> None:
        """The same by a subagent, logged in the same transcript, while the call that started it is open."""
        self.log.base["isSidechain"] = True
        self.log.base["agentId"] = "a1"
        self.edit(path, old, new)
        del self.log.base["isSidechain"], self.log.base["agentId"]

    def fail(self, path: str, old: str, new: str) -> None:
        """An edit that the tool refuses."""
        self._now()
        told = "File has been modified since read"
        self.log.ran("Edit", told, error=True, file_path=str(self.at / path), old_string=old, new_string=new)
        self._then()

    def write(self, path: str, text: str) -> None:
        self._now()
        self.log.ran("Write", file_path=str(self.at / path), content=text)
        self.story.put(path, text, self.at)
        self._then()

    def bash(self, command: str, files: dict[str, str] | None = None, output: str = "ok") -> None:
        """A command, and what the files it changes are afterwards."""
        self._now()
        self.log.ran("Bash", output, command=command)
        for path, text in (files or {}).items():
            self.story.put(path, text, self.at)
        self._then()

    def commit(self, message: str, *others: Agent) -> str:
        """The agent commits by itself, and says so."""
        self._now()
        call = f"toolu_{self.log.count + 1}"
        self.log.call("Bash", call, command=f'git add -A && git commit -m "{message}"')
        self._then()
        sha = self.story.commit(message, self, *others, at=self.at)
        self._now()
        self.log.result(f"[main {sha[:7]}] {message}", call)
        self._then()
        return sha

    def say(self, text: str = "done") -> None:
        self._now()
        self.log.say(text)
        self._then()

    def _now(self) -> None:
        self.log.now = self.story.now

    def _then(self) -> None:
        self.story.now = max(self.story.now, self.log.now)
