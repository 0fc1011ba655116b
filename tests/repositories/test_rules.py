"""Rules through a repository's history: in force or not, kept or broken, and what their introduction changed."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from agentsignals.changes import git as objects
from agentsignals.cli import main
from agentsignals.cli.repositories import rules_text
from agentsignals.ingest import pipeline
from agentsignals.ingest.collection import repository_rules
from agentsignals.model import Session
from agentsignals.repositories.rule_report import (
    OTHER,
    Point,
    Q,
    RuleRow,
    RulesReport,
    effects,
    of_repository,
    of_traces,
    reads,
)
from tests import claude
from tests.build import Part, call, event, say, session, user
from tests.claude import Log
from tests.git_repositories import git
from tests.repositories.story import Story
from tests.verbs import printed, printed_json

DAY_0 = datetime(2026, 1, 1, tzinfo=UTC)
RULE = "Never edit `gen/`."
TEST = "Before committing, run `make test`."
COMMITTED = "[main 1a2b3c4] x"


def at(day: float) -> int:
    return int((DAY_0 + timedelta(days=day)).timestamp() * 1_000_000)


class History:
    """A repository whose commits are made on days."""

    def __init__(self, path: Path) -> None:
        self.path = path
        git(None, "init", "--quiet", "-b", "main", str(path))

    def commit(self, day: float, written: float | None = None, **files: str | None) -> str:
        """Files (`__` for `/`) as they are from that day on; None deletes. `written`: the day it was, if earlier."""
        for name, text in files.items():
            path = self.path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if text is not None:
                path.symlink_to(text[3:]) if text.startswith("-> ") else path.write_text(text)
        return self.run(day, written, "add", "-A") and self.run(day, written, "commit", "--quiet", "-m", "x")

    def run(self, day: float, written: float | None, *words: str) -> str:
        dates = {"GIT_COMMITTER_DATE": day, "GIT_AUTHOR_DATE": day if written is None else written}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in dates.items():
                patch.setenv(name, (DAY_0 + timedelta(days=value)).isoformat())
            git(None, "-C", str(self.path), "-c", "commit.gpgsign=false", *words)
        return git(None, "-C", str(self.path), "rev-parse", "HEAD") if words[0] != "add" else "added"

    def rules(self, *sessions: Session, file: str | None = None) -> RulesReport:
        located = objects.locate(self.path)
        assert located is not None
        return of_repository(located[0], str(self.path), sessions, file)

    def rule(self, *sessions: Session) -> RuleRow:
        (row,) = self.rules(*sessions).rules
        return row


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path / "shop")
    made.commit(0, src__a="x", gen__a="x", **{"app__b.py": "x"})
    return made


def worked(day: float, *parts: Part, hours: float = 1, **facts: Any) -> Session:
    """A session that began on a day."""
    made = session(user("go"), *parts, say("done"), session_id=f"s{day}", **{"cwd": "/work/shop", **facts})
    made.started_at, made.ended_at = at(day), at(day + hours / 24)
    return made


def edit(path: str) -> Part:
    return call("Edit", path=f"/work/shop/{path}")


def committing(tests: bool) -> list[Part]:
    ran = [call("Bash", command="make test")] if tests else []
    return [edit("src/a"), *ran, call("Bash", command="git commit -m x", result=COMMITTED)]


def states(row: RuleRow) -> dict[str, str]:
    return {s.session_id: s.exposure for s in row.sessions}


def test_a_rule_is_in_force_from_its_commit_to_the_one_that_takes_it_out(history: History) -> None:
    first = history.commit(10, **{"CLAUDE.md": f"# Rules\n\n- {RULE}\n"})
    history.commit(15, **{"CLAUDE.md": f"# Rules\n\nBe kind.\n\n- **{RULE}**\n"})
    last = history.commit(20, **{"CLAUDE.md": "# Rules\n"})
    row = history.rule(*[worked(day, edit("gen/a")) for day in (5, 12, 17, 25)])
    assert states(row) == {"s5": "before", "s12": "exposed", "s17": "exposed", "s25": "withdrawn"}
    assert (row.since, row.until, row.line, row.exposed, row.broken) == (first, last, 5, 2, 2)
    assert [s.marks[0].text for s in row.sessions] == ["gen/a"] * 4, "what was done is known of all"


@pytest.mark.parametrize(
    ("began", "written", "merged", "hours", "state"),
    [(5, 8, 10, 1, "before"), (9, 8, 10, 1, "unknown"), (9.9, 10, 10, 9, "unknown"), (10.1, 8, 10, 1, "exposed")],
)
def test_a_change_that_is_under_way_leaves_doubt(
    history: History, began: float, written: float, merged: float, hours: float, state: str
) -> None:
    history.commit(merged, written, **{"CLAUDE.md": RULE})
    assert list(states(history.rule(worked(began, edit("src/a"), hours=hours))).values()) == [state]


def test_a_branch_counts_from_its_merge(history: History) -> None:
    history.run(1, None, "checkout", "--quiet", "-b", "side")
    history.commit(5, **{"CLAUDE.md": RULE})
    history.run(5, None, "checkout", "--quiet", "main")
    history.run(10, None, "merge", "--quiet", "--no-ff", "-m", "m", "side")
    row = history.rule(*[worked(day, edit("src/a")) for day in (4, 7, 11)])
    assert list(states(row).values()) == ["before", "unknown", "exposed"]


def test_a_session_that_writes_the_rule_is_not_judged_by_it(history: History) -> None:
    history.commit(10, **{"CLAUDE.md": RULE})
    row = history.rule(worked(9, edit("gen/a"), edit("CLAUDE.md")), worked(8, edit("gen/a")))
    assert states(row) == {"s9": "unknown", "s8": "before"}


@pytest.mark.parametrize(
    ("agent", "path", "level"),
    [
        ("claude-code", "CLAUDE.md", "yes"),
        ("claude-code", "app/CLAUDE.md", "yes"),
        ("claude-code", ".claude/rules/x.md", "yes"),
        ("claude-code", "AGENTS.md", "perhaps"),
        ("claude-code", "GEMINI.md", "no"),
        ("codex", "AGENTS.md", "yes"),
        ("codex", "CLAUDE.md", "no"),
        ("cursor-agent", ".cursor/rules/a/b.mdc", "yes"),
        ("copilot-cli", ".github/copilot-instructions.md", "yes"),
        ("opencode", "CLAUDE.md", "perhaps"),
        ("gemini-cli", "AGENTS.md", "perhaps"),
        ("amp", "AGENT.md", "perhaps"),
        ("zed", "AGENT.md", "perhaps"),
        ("crush", ".cursor/rules/a.mdc", "perhaps"),
        ("crush", "CLAUDE.local.md", "perhaps"),
        ("crush", "CRUSH.local.md", "perhaps"),
        ("roo-code", ".roo/rules/a.md", "yes"),
        ("roo-code", ".roorules", "perhaps"),
        ("roo-code", ".roo/rules-code/a.md", "perhaps"),
        ("nobody", "AGENTS.md", "unknown"),
    ],
)
def test_agents_read_their_own_files(agent: str, path: str, level: str) -> None:
    assert reads(agent, path) == level


@pytest.mark.parametrize(
    ("files", "agent", "state"),
    [
        ({"AGENTS.md": RULE}, "claude-code", "unknown"),
        ({"AGENTS.md": RULE}, "codex", "exposed"),
        ({"AGENTS.md": RULE}, "nobody", "unknown"),
        ({"CLAUDE.md": RULE}, "codex", "elsewhere"),
        ({"AGENTS.md": RULE, "CLAUDE.md": "See\n@AGENTS.md\n"}, "claude-code", "exposed"),
        ({"AGENTS.md": RULE, "CLAUDE.md": "-> AGENTS.md"}, "claude-code", "exposed"),
        ({"AGENTS.md": RULE, "CLAUDE.md": "See `@AGENTS.md`."}, "claude-code", "unknown"),
        ({"AGENT.md": RULE, "GEMINI.md": "@AGENT.md\n"}, "gemini-cli", "exposed"),
        ({"CLAUDE.md": RULE, "AGENTS.md": "@CLAUDE.md\n"}, "codex", "unknown"),
        ({"CLAUDE.md": RULE, "AGENTS.md": "-> CLAUDE.md"}, "codex", "exposed"),
        ({"CLAUDE.md": RULE, "AGENTS.md": "-> CLAUDE.md"}, "gemini-cli", "unknown"),
        ({".cursor__rules__a.mdc": f"---\nglobs: src/**\n---\n{RULE}"}, "cursor-agent", "exposed"),
        ({".cursor__rules__a.mdc": f"---\nglobs: app/**\n---\n{RULE}"}, "cursor-agent", "elsewhere"),
        ({".cursor__rules__a.mdc": f"---\nalwaysApply: false\n---\n{RULE}"}, "cursor-agent", "unknown"),
        ({".kiro__steering__a.md": f"---\ninclusion: manual\n---\n{RULE}"}, "kiro", "unknown"),
    ],
)
def test_a_rule_holds_for_who_reads_its_file(history: History, files: dict[str, str], agent: str, state: str) -> None:
    history.commit(1, **files)
    row = next(r for r in history.rules(worked(5, edit("src/a"), agent=agent, format=agent)).rules)
    assert [s.exposure for s in row.sessions] == [state], row.sessions[0].exposed_by


def test_a_folders_rules_hold_in_the_folder(history: History) -> None:
    history.commit(1, **{"app__CLAUDE.md": "Never edit `b.py`, `c.py` or `d/`.\n\n" + TEST})
    inside = worked(5, call("Edit", path="/work/shop/app/b.py"), cwd="/work/shop/app")
    below = worked(6, edit("app/c.py"))
    beside = worked(7, edit("c.py"), edit("src/a"))
    unplaced = worked(8, call("Edit", path="/other/app/new.py"), cwd="/other/app")
    made = history.rules(inside, below, beside, unplaced)
    row = next(r for r in made.rules if r.kind == "never_edit")
    assert states(row) == {"s5": "exposed", "s6": "unknown", "s7": "elsewhere", "s8": "unknown"}
    assert [s.verdict for s in row.sessions][:3] == ["broken", "broken", "no_occasion"]


def test_another_checkout_is_the_same_repository(history: History) -> None:
    history.commit(1, **{"CLAUDE.md": RULE})
    elsewhere = worked(5, call("Edit", path="/work/shop-worktrees/w1/gen/a"), cwd="/work/shop-worktrees/w1")
    row = history.rule(elsewhere)
    assert (row.exposed, row.broken) == (1, 1)


def test_the_text_in_a_trace_is_believed_before_the_history(history: History) -> None:
    def logged(text: str) -> Part:
        return event("meta", f"# AGENTS.md instructions for /work/shop\n\n<INSTRUCTIONS>\n{text}\n</INSTRUCTIONS>")

    history.commit(10, **{"AGENTS.md": RULE})
    early = worked(5, logged(f"x\n\n- {RULE}"), edit("gen/a"), agent="codex", format="codex")
    late = worked(15, logged("Be kind."), edit("gen/a"), agent="codex", format="codex")
    row = history.rule(early, late)
    assert states(row) == {"s5": "exposed", "s15": "withdrawn"}
    sessions = {"s5": early, "s15": late}
    shown = of_traces(lambda ids: [sessions[i] for i in sorted(ids)], {"s5": "shop", "s15": "shop"})
    (row,) = shown.rules
    assert (row.place, row.line, row.exposed, row.broken) == ("shop", 3, 1, 1)
    assert shown.files == {"shop: AGENTS.md": {"versions": 2, "rules": 1, "not_mechanical": 0}}
    nowhere = of_traces(lambda ids: [sessions[i] for i in ids], {"s5": None})
    assert nowhere.sessions == 0, "a session that lies nowhere has no history"


# -- effect ---------------------------------------------------------------------------------------------------------


def series(history: History, kept: Sequence[bool], rule_day: float, **facts: Any) -> RuleRow:
    """The row of a rule that came on a day, with a session a day."""
    history.commit(rule_day - 0.5, **{"CLAUDE.md": TEST})
    return history.rule(*[worked(day, *committing(tests), **facts) for day, tests in enumerate(kept, 1)])


def test_a_planted_effect_is_seen(history: History) -> None:
    row = series(history, [day == 4 for day in range(12)] + [day != 3 for day in range(12)], 13)
    change = row.effect.change
    assert row.effect.verdict == "kept_more", row.effect
    assert change is not None and (change.n_before, change.n_after) == (12, 12)
    assert (row.exposed, row.kept, row.broken, row.not_exposed) == (12, 11, 1, row.not_exposed)
    assert sum(row.not_exposed.values()) == 12


@pytest.mark.parametrize(("rule", "broken"), [("Never commit to `main`.", 0.0), ("Use conventional commits.", 0.5)])
def test_one_breach_of_what_must_never_be_done_breaks_it(history: History, rule: str, broken: float) -> None:
    history.commit(12.5, **{"CLAUDE.md": rule})
    good = call("Bash", command="git commit -m 'fix: a'", result="[side 1a2b3c4] fix: a")
    bad = call("Bash", command="git commit -m x", result="[main 1a2b3c5] x")
    row = history.rule(*[worked(day, edit("src/a"), good, edit("src/a"), bad) for day in range(1, 25)])
    assert row.effect.change is not None and row.effect.change.after == broken


def test_a_rule_that_does_harm_is_seen_too(history: History) -> None:
    assert series(history, [True] * 12 + [False] * 12, 13).effect.verdict == "kept_less"


@pytest.mark.parametrize(
    ("kept", "rule_day", "because"),
    [
        ([False] * 3 + [True] * 20, 4, "3 sessions with an occasion before it"),
        ([False] * 20 + [True] * 7, 21, "7 sessions with an occasion after it"),
        ([day % 2 == 0 for day in range(40)], 21, "may be chance"),
        ([random.Random(day).random() < day / 40 for day in range(40)], 21, "beside the trend"),  # noqa: S311
    ],
)
def test_most_often_nothing_can_be_told(history: History, kept: list[bool], rule_day: float, because: str) -> None:
    effect = series(history, kept, rule_day).effect
    assert effect.verdict == "cannot_tell"
    assert because in effect.because


def test_what_changed_for_other_rules_as_well_is_no_effect_of_this_one(history: History) -> None:
    history.commit(0.1, **{"CLAUDE.md": RULE})
    history.commit(12.5, **{"CLAUDE.md": f"{RULE}\n\n{TEST}"})
    days = [worked(day, *committing(day > 12), *([edit("gen/a")] if day <= 12 else [])) for day in range(1, 25)]
    effect = next(r for r in history.rules(*days).rules if r.kind == "run").effect
    assert effect.verdict == "cannot_tell"
    assert "rules that did not change" in effect.because


def test_what_else_changed_is_named(history: History) -> None:
    history.commit(12.5, **{"CLAUDE.md": f"{TEST}\n\n{RULE}"})
    days = [worked(d, *committing(d > 12), model="old" if d <= 12 else "new") for d in range(1, 25)]
    effect = next(r for r in history.rules(*days).rules if r.kind == "run").effect
    assert effect.meanwhile == [
        "1 other rules came with the same commit",
        "model new: 0% of the sessions before, 100% after",
        "model old: 100% of the sessions before, 0% after",
    ]


def points(seed: int, before: float, after: float) -> list[Point]:
    chance = random.Random(seed)  # noqa: S311
    return [
        Point(
            session_id=f"s{n}", at=n, is_after=n >= 12, kept=float(chance.random() < (after if n >= 12 else before)),
            agent="a", model=None, agent_version=None,
        )
        for n in range(24)
    ]  # fmt: skip


def test_many_rules_share_their_chance() -> None:
    """The same series is told of one rule, and not of one among sixty whose others are noise."""
    planted = points(12, 0.15, 0.95)
    (alone,) = effects([planted], [[]], [[]])
    among, *noise = effects([planted, *(points(200 + n, 0.5, 0.5) for n in range(59))], [[]] * 60, [[]] * 60)
    assert alone.q is not None and among.q is not None and alone.q <= Q < among.q
    assert (alone.verdict, among.verdict) == ("kept_more", "cannot_tell")
    assert among.because == "among so many rules the change may be chance"
    assert {effect.verdict for effect in noise} == {"cannot_tell"}


def test_a_share_that_moves_little_is_not_named() -> None:
    def named(moved: int) -> list[str]:
        made = [
            structs.replace(point, model="new" if point.is_after and n < 12 + moved else "old")
            for n, point in enumerate(points(1, 0.5, 0.5))
        ]
        return effects([made], [[]], [[]])[0].meanwhile

    assert OTHER == 0.2
    assert (len(named(2)), len(named(3))) == (0, 2), "a sixth and a fourth of twelve sessions"


# -- the command -----------------------------------------------------------------------------------------------------


def logs(folder: Path, *cwds: Path) -> None:
    """Three sessions in each folder: one before day 10, one that runs the tests, one that does not."""
    folder.mkdir()
    for n, (cwd, (day, tests)) in enumerate(product(cwds, [(2, False), (12, True), (14, False)])):
        log = claude.Log(session=f"6f1d2c3b-0000-4000-8000-00000000000{n}", cwd=str(cwd))
        log.now = DAY_0 + timedelta(days=day)
        log.user("go")
        log.ran("Bash", "ok", command="echo x > src/shop/a.py && echo x > src/shop/b.py")
        if tests:
            log.ran("Bash", "ok", command="make test")
        log.ran("Bash", COMMITTED, command="git commit -m x")
        log.say("done")
        (folder / f"{n}.jsonl").write_bytes(log.data())


def test_the_command_says_what_became_of_each_rule(
    history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history.commit(10, **{"CLAUDE.md": f"# Rules\n\n{TEST}\n\nBe kind, always.\n"})
    logs(tmp_path / "logs", history.path)
    store = ["--store", str(tmp_path / "store")]
    assert main(["analyze", str(tmp_path / "logs"), "--no-report", *store, "--jobs", "1", "--quiet"]) == 0
    capsys.readouterr()
    made = printed_json(capsys, "rules", history.path, *store)
    (row,) = made["rules"]
    assert (row["exposed"], row["kept"], row["broken"], row["no_occasion"]) == (2, 1, 1, 0)
    assert made["files"] == {"CLAUDE.md": {"versions": 1, "rules": 1, "not_mechanical": 1}}
    broken = next(s for s in row["sessions"] if s["exposure"] == "exposed" and s["verdict"] == "broken")
    mark = broken["marks"][0]
    assert "git commit -m x" in printed(capsys, "show", broken["session_id"], *store)
    assert (mark["text"], mark["line"]) == ("git commit -m x", 4)
    text = printed(capsys, "rules", history.path, *store, "--markdown")
    assert "CLAUDE.md:3" in text and "did not run before it" in text and "8 are needed" in text
    assert "No trace holds the text" in printed(capsys, "rules", *store)


def test_sessions_of_another_clone_count(history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history.commit(10, **{"CLAUDE.md": TEST})
    logs(tmp_path / "logs", history.path, tmp_path / "clones" / history.path.name, tmp_path / "clones" / "other")
    store = ["--store", str(tmp_path / "store")]
    assert main(["analyze", str(tmp_path / "logs"), "--no-report", *store, "--jobs", "1", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["rules", str(history.path), *store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 6, "those of a folder of another name are others'"


def test_what_is_asked_wrongly_is_said(history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--file", "AGENTS.md"]) == 2
    assert main(["rules", str(tmp_path / "nowhere")]) == 1
    capsys.readouterr()
    store = ["--store", str(tmp_path / "store")]
    assert "contains an instruction file" in printed(capsys, "rules", history.path, *store)
    assert main(["rules", str(history.path), *store, "--file", "AGENTS.md"]) == 1
    assert "no instruction file AGENTS.md" in capsys.readouterr().err


def test_an_instruction_file_is_hostile_text(history: History) -> None:
    nasty = f"{RULE[:-1]} \x1b[2J<script>alert(1)</script>\u202e.\n"
    history.commit(1, **{"CLAUDE.md": nasty, "AGENTS.md": "\0\ud7ff`" * 50, "app__CLAUDE.md": "---\nglobs: [\n" * 80})
    made = history.rules(worked(5, edit("gen/a")))
    assert [row.file for row in made.rules] == ["CLAUDE.md"]
    text = rules_text(made)
    assert "\x1b" not in text and "\u202e" not in text
    assert "<script>" not in rules_text(made, as_markdown=True)


def test_sessions_in_and_below_the_folder_of_a_repository_are_its_own(tmp_path: Path) -> None:
    story = Story(tmp_path / "one")
    story.put("CLAUDE.md", RULE)
    story.commit("base")
    (tmp_path / "in").mkdir()
    for n, cwd in enumerate((story.root, story.root / "src", f"{story.root}-old")):
        log = Log(f"s{n}", name=f"n{n}", cwd=str(cwd))
        log.user("go")
        log.say("done")
        (tmp_path / "in" / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "store", jobs=1)
    assert repository_rules(str(story.root), tmp_path / "store", jobs=1).sessions == 2


@pytest.mark.slow
def test_sessions_that_came_with_another_repository_are_not_this_one_s(tmp_path: Path) -> None:
    """Folders of one name are one place where a store has no better name; their checkpoints tell them apart."""
    made = [Story(tmp_path / name) for name in ("first", "second")]
    for story in made:
        story.put("CLAUDE.md", RULE)
        with story.agent(story.folder.name) as agent:
            agent.write("gen/a.py", "a = 1\n")
        story.commit("written", agent)
        story.publish()
    reports = [repository_rules(str(story.root), tmp_path / "store", jobs=1) for story in (*made, made[0])]
    assert [report.sessions for report in reports] == [1, 1, 1]
