"""Rules of instruction files: which sentences are rules, and whether a session kept one."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agentsignals.repositories.rule_compliance import MOST_OCCASIONS, Acts, Followed, follow
from agentsignals.repositories.rules import Rule, extract, matching, read
from tests.build import Part, call, event, say, session, user
from tests.quick import each_row


def rules(text: str) -> list[Rule]:
    return extract(read(text)).rules


def short(rule: Rule) -> str:
    """`run commit make test`, with what it is instead of, its paths and its condition."""
    parts = [rule.kind, rule.when, " | ".join(rule.commands + rule.branches)]
    parts += ["not " + " | ".join(rule.instead_of)] if rule.instead_of else []
    parts += ["on " + " | ".join(rule.paths)] if rule.paths else []
    parts += [f"[{rule.condition}]"] if rule.condition else []
    return " ".join(part for part in parts if part)


SENTENCES = [json.loads(x) for x in Path(__file__).with_name("rule_sentences.jsonl").read_text("utf-8").splitlines()]
"""Texts with the rules that they state, each with its line; what only looks like a rule states none."""


@each_row("case", SENTENCES)
def test_a_text_states_the_rules_that_are_read_in_it(case: dict[str, Any]) -> None:
    assert [f"{rule.line} {short(rule)}" for rule in rules(case["text"])] == case["rules"]


def test_the_head_says_which_files_a_document_is_about() -> None:
    head = "---\nglobs: src/**/*.ts, lib/*.ts\nalwaysApply: false\n---\nNever use `yarn`.\n@AGENTS.md\n"
    document = read(head)
    assert (document.globs, document.is_optional) == (("src/**/*.ts", "lib/*.ts"), False)
    assert document.imports == ("AGENTS.md",)
    assert [rule.line for rule in extract(document).rules] == [5]


@pytest.mark.parametrize(
    ("head", "globs", "is_optional"),
    [
        ("alwaysApply: false", (), True),
        ("alwaysApply: true", (), False),
        ("paths:\n  - src/**\n  - lib/**", ("src/**", "lib/**"), False),
        ("applyTo: 'src/**'", ("src/**",), False),
        ("inclusion: fileMatch\nfileMatchPattern: ['a/*.ts', 'b/*.ts']", ("a/*.ts", "b/*.ts"), False),
        ("inclusion: always", (), False),
        ("inclusion: manual", (), True),
        ("inclusion: auto\nname: x", (), True),
        ("trigger: always_on", (), False),
        ("trigger: glob\nglobs: src/**", ("src/**",), False),
        ("trigger: model_decision\nglobs: src/**", ("src/**",), True),
        ('trigger: "manual"', (), True),
    ],
)
def test_the_head_says_when_a_document_is_read(head: str, globs: tuple[str, ...], is_optional: bool) -> None:
    document = read(f"---\n{head}\n---\nNever use `yarn`.\n")
    assert (document.globs, document.is_optional) == (globs, is_optional)


def test_sentences_that_ask_something_else_are_counted() -> None:
    made = extract(
        read("Never use `yarn`.\nKeep functions short.\n\nThe project has two parts.\n\n- Always be kind.\n")
    )
    assert (len(made.rules), made.others) == (1, 2)


def test_a_rule_that_is_put_differently_is_the_same_rule() -> None:
    first, second = rules("Never run `git clean`.")[0], rules("- **Do not use** `git clean`!")[0]
    assert first.key == second.key != rules("Never run `git gc`.")[0].key


@pytest.mark.parametrize(
    "text", ["never use " + "`npm` or " * 20_000, "- " * 100_000, "before " + "any " * 100_000, "`" * 99_999]
)
def test_hostile_text_costs_no_time(text: str) -> None:
    began = time.monotonic()
    rules(text)
    assert time.monotonic() - began < 2


COMMITTED = "[main 1a2b3c4] x\n 1 file changed"


def sh(command: str, result: str | None = "ok", **facts: Any) -> Part:
    return call("Bash", command=command, result=result, **facts)


def edit(path: str = "src/a.py", **facts: Any) -> Part:
    return call("Edit", path=path, **facts)


def commit(message: str = "x", output: str = COMMITTED, **facts: Any) -> Part:
    return sh(f"git commit -m '{message}'", output, **facts)


def followed(sentence: str, *parts: Part, has_hooks: bool | None = False, **facts: Any) -> Followed:
    (rule,) = extract(read(sentence)).rules
    return follow(
        rule, Acts(session(*parts, **facts), lambda path: None if path[:1] == "/" else path), has_hooks=has_hooks
    )


BEFORE_COMMIT = "Before committing, run `make test`."
AFTER_CHANGE = "After every change, run `make test`."
DONE = "Before finishing, run `make test`."


@each_row(("sentence", "parts", "verdict"), [
        (BEFORE_COMMIT, [edit(), sh("make test"), commit()], "kept"),
        (BEFORE_COMMIT, [edit(), sh("make test && git commit -m x", COMMITTED)], "kept"),
        (BEFORE_COMMIT, [edit(), sh("bash -lc 'make lint test'"), commit()], "kept"),
        (BEFORE_COMMIT, [edit(), commit()], "broken"),
        (BEFORE_COMMIT, [edit(), sh("make test"), commit(), edit(), commit()], "broken"),
        (BEFORE_COMMIT, [edit(), sh("echo make test"), commit()], "broken"),
        (BEFORE_COMMIT, [sh("make test"), edit(), commit()], "cannot_tell"),
        (BEFORE_COMMIT, [edit(), sh("pytest"), commit()], "cannot_tell"),
        (BEFORE_COMMIT, [commit()], "cannot_tell"),
        (BEFORE_COMMIT, [edit(), event("user_shell", "make test"), commit()], "cannot_tell"),
        (BEFORE_COMMIT, [edit(), commit(output="$ make test\nok\n" + COMMITTED)], "kept"),
        (BEFORE_COMMIT, [edit(), commit(output="nothing to commit")], "no_occasion"),
        (BEFORE_COMMIT, [edit(), sh("git commit -m x", "hook failed", status="error")], "no_occasion"),
        (BEFORE_COMMIT, [edit(), say("done")], "no_occasion"),
        ("Before pushing, run `make test`.", [edit(), sh("git push"), say("x")], "broken"),
        ("Before pushing, run `make test`.", [edit(), sh("git push --dry-run"), say("x")], "no_occasion"),
        ("Before opening a PR, run `make test`.", [edit(), sh("make test"), sh("gh pr create")], "kept"),
        (AFTER_CHANGE, [user("go"), edit(), sh("make test"), say("done")], "kept"),
        (AFTER_CHANGE, [user("go"), edit(), say("done")], "broken"),
        (AFTER_CHANGE, [user("go"), sh("make test"), edit(), say("done")], "broken"),
        (AFTER_CHANGE, [user("go"), edit("README.md"), say("done")], "no_occasion"),
        (AFTER_CHANGE, [user("go"), edit("tmp/x.py"), say("done")], "no_occasion"),
        (AFTER_CHANGE, [user("go"), edit("/home/me/x.py"), say("done")], "no_occasion"),
        (AFTER_CHANGE, [user("go"), edit(status="error"), say("done")], "no_occasion"),
        (AFTER_CHANGE, [user("go"), edit()], "cannot_tell"),
        (AFTER_CHANGE, [user("go"), edit(), event("interrupt", "stop"), say("x")], "cannot_tell"),
        (AFTER_CHANGE, [user("go"), edit(), say("done"), user("test"), sh("make test"), say("ok")], "cannot_tell"),
        (AFTER_CHANGE, [user("go"), edit(), user("more", "queued_prompt"), sh("make test"), say("ok")], "kept"),
        (AFTER_CHANGE, [user("go"), edit(), event("meta", "x"), user("more"), sh("make test"), say("ok")], "kept"),
        (AFTER_CHANGE, [user("go"), edit(), event("interrupt", "x"), user("more"), sh("make test"), say("ok")],
         "cannot_tell"),
        (AFTER_CHANGE, [user("go"), edit(), sh("pytest tests"), say("done")], "cannot_tell"),
        ("After changes, run `pytest`.", [user("go"), edit(), sh("pytest tests/test_a.py"), say("x")], "cannot_tell"),
        ("After changes, run `npm test`.", [user("go"), edit(), sh("npm run test -- --ci"), say("x")], "kept"),
        ("After changes, run `npm test`.", [user("go"), edit(), sh("npm run test:unit"), say("x")], "cannot_tell"),
        (DONE, [user("go"), edit(), sh("make test"), say("done")], "kept"),
        (DONE, [user("go"), edit(), say("done")], "broken"),
        (DONE, [user("go"), edit(), sh("make test"), say("x"), user("go"), edit(), say("x")], "cannot_tell"),
        ("After changing `a.proto`, run `make gen`.", [edit("a.proto"), sh("make gen"), say("x")], "kept"),
        ("After changing `a.proto`, run `make gen`.", [edit("a.proto"), say("x")], "broken"),
        ("After changing `a.proto`, run `make gen`.", [edit("b.py"), say("x")], "no_occasion"),
    ])  # fmt: skip
def test_a_command_at_its_occasion(sentence: str, parts: list[Part], verdict: str) -> None:
    made = followed(sentence, *parts)
    assert made.verdict == verdict, made


@each_row(
    ("sentence", "parts", "verdict"),
    [
        ("Never run `git push --force`.", [sh("git push -f origin x")], "broken"),
        ("Never run `git push --force`.", [sh("git push --force-with-lease")], "kept"),
        ("Never run `git push --force`.", [sh("ls")], "no_occasion"),
        ("Never run `git clean`.", [sh("git stash && git clean -fd")], "broken"),
        ("Never run `git clean`.", [sh("git stash && git clean -fd", "no", status="error")], "cannot_tell"),
        ("Never run `git clean`.", [sh("git clean -fd", None, status="none")], "cannot_tell"),
        ("Never run `git clean`.", [sh("git clean -fd", "no", status="rejected")], "no_occasion"),
        ("Never run `git clean`.", [sh("echo git clean; git log --grep 'git clean'")], "kept"),
        ("Never run `git clean`.", [user("please run git clean"), sh("git clean -fd")], "cannot_tell"),
        ("Never run `git clean` unless asked.", [sh("git clean -fd")], "cannot_tell"),
        ("Never run `git clean`.", [sh("git clean", thread="sub1")], "cannot_tell"),
        ("Never run `rm -rf`.", [sh("rm -fr build")], "broken"),
        ("Never use `build:bin` directly.", [sh("bun run build:bin")], "broken"),
        ("Never use `build:bin` directly.", [sh("bun run build")], "kept"),
        ("Never use `python`.", [sh("uv run python a.py")], "kept"),
        ("Never use `python`.", [sh("python a.py")], "broken"),
        ("Never use `python`.", [sh("python -m pytest")], "broken"),
        ("Never use `npx`.", [sh("npx tsc")], "broken"),
        ("Use `uv`, not `pip`.", [sh("python -m pip install x")], "broken"),
        ("Use `rg` instead of `grep`.", [sh("ps | grep x; rg y")], "kept"),
        ("Use `rg` instead of `grep`.", [sh("grep -r x .")], "broken"),
        ("Use `rg` instead of `grep`.", [sh("ls")], "no_occasion"),
        ("Use `pnpm`, not `npm`.", [sh("npm install")], "broken"),
        ("Use `pnpm`, not `npm`.", [sh("npm view left-pad version")], "cannot_tell"),
        ("Use `pnpm`, not `npm`.", [sh("pnpm install")], "kept"),
        ("Use `uv`, not `pip`.", [sh("uv pip install x")], "kept"),
        ("Always prefix commands with `rtk`.", [sh("rtk git status | tail -3 && cd x && rtk make")], "kept"),
        ("Always prefix commands with `rtk`.", [sh("git status")], "broken"),
        ("Always prefix commands with `rtk`.", [sh("rtk make", "no", status="error"), sh("make")], "kept"),
    ],
)
def test_a_command_that_is_forbidden_or_chosen(sentence: str, parts: list[Part], verdict: str) -> None:
    made = followed(sentence, *parts)
    assert made.verdict == verdict, made


@pytest.mark.parametrize(
    ("sentence", "parts", "verdict"),
    [
        ("Never edit `vendor/`.", [edit("vendor/x/a.py")], "broken"),
        ("Never edit `vendor/`.", [edit("src/vendors.py")], "kept"),
        ("Never edit `vendor/`.", [edit("src/vendor/a.py")], "cannot_tell"),
        ("Never edit `vendor/`.", [call("Read", path="vendor/a.py")], "no_occasion"),
        ("Never edit `src/*.gen.ts`.", [edit("src/a.gen.ts")], "broken"),
        ("Never edit `src/*.gen.ts`.", [sh("echo x > src/a.gen.ts")], "broken"),
        ("Never edit `src/*.gen.ts`.", [sh("make gen > src/a.gen.ts")], "cannot_tell"),
        ("Never edit `src/*.gen.ts`.", [user("change a.gen.ts"), edit("src/a.gen.ts")], "cannot_tell"),
        ("Never commit to main.", [commit()], "broken"),
        ("Never commit to main.", [commit(output="[feature 1a2b3c4] x")], "kept"),
        ("Never commit to main.", [commit(output="")], "cannot_tell"),
        ("Never push to `main`.", [sh("git push origin main")], "broken"),
        ("Never push to `main`.", [sh("git push", "To x\n   1a2b3c4..5d6e7f8  main -> main")], "broken"),
        ("Never push to `main`.", [sh("git push -u origin HEAD:feature")], "kept"),
        ("Never push to `main`.", [sh("git push")], "cannot_tell"),
        ("Never push to `main`.", [commit()], "no_occasion"),
        ("Never push to `main`.", [sh("git push origin :old")], "no_occasion"),
        ("Never commit or push to main.", [sh("git push origin main")], "broken"),
        ("Never push to `main`.", [user("push it"), sh("git push origin main")], "cannot_tell"),
        ("Never commit to main.", [sh("cd $TRIAL && git commit -m x", COMMITTED)], "no_occasion"),
        ("Never commit to main.", [sh("cd /home/me/shop && git commit -m x", COMMITTED)], "broken"),
        ("Use conventional commits.", [commit("fix(api): mend it")], "kept"),
        ("Use conventional commits.", [commit("Mend it")], "broken"),
        ("Use conventional commits.", [sh("git commit -F msg.txt", COMMITTED)], "cannot_tell"),
        ("Use conventional commits.", [sh("git commit -m \"$(cat <<'EOF'\nfeat: x\n\ny\nEOF\n)\"", COMMITTED)],
         "kept"),
        ("Never add a co-authored-by line.", [commit("x\n\nCo-Authored-By: A <a@b.c>")], "broken"),
        ("Never add a co-authored-by line.", [commit("x")], "kept"),
    ],
)  # fmt: skip
def test_files_branches_and_messages(sentence: str, parts: list[Part], verdict: str) -> None:
    made = followed(sentence, *parts)
    assert made.verdict == verdict, made


@pytest.mark.parametrize(("has_hooks", "verdict"), [(False, "broken"), (True, "cannot_tell"), (None, "cannot_tell")])
def test_hooks_may_have_run_it_at_a_commit(has_hooks: bool | None, verdict: str) -> None:
    assert followed(BEFORE_COMMIT, edit(), commit(), has_hooks=has_hooks).verdict == verdict
    assert followed(AFTER_CHANGE, user("go"), edit(), commit(), say("x"), has_hooks=has_hooks).verdict == verdict


def test_a_breach_names_its_event_and_line() -> None:
    made = followed("Never edit `vendor/`.", user("go"), edit("a.py"), edit("vendor/b.py"))
    assert (made.kept, made.broken, made.untold) == (1, 1, 0)
    first = made.marks[0]
    assert (first.outcome, first.text, first.artifact, first.line) == ("broken", "vendor/b.py", "a1", 3)
    assert first.turn == 0


def test_marks_are_bounded_and_counts_are_not() -> None:
    made = followed("Never edit `vendor/`.", *[edit(f"src/{n}.py") for n in range(MOST_OCCASIONS + 5)])
    assert (made.kept, len(made.marks)) == (MOST_OCCASIONS + 5, MOST_OCCASIONS)


@pytest.mark.parametrize(
    ("pattern", "path", "where"),
    [
        ("docs/", "docs/a/b.md", "yes"),
        ("docs", "docs", "yes"),
        ("docs/", "x/docs/a.md", "maybe"),
        ("docs/", "mydocs/a.md", ""),
        ("*.lock", "a/b.lock", "yes"),
        ("src/**/gen.ts", "src/a/b/gen.ts", "yes"),
        ("src/**/gen.ts", "src/gen.ts", "yes"),
        ("src/*/gen.ts", "src/a/b/gen.ts", ""),
        ("a.{js,ts}", "a.ts", "yes"),
        ("a.ts", "aXts", ""),
    ],
)
def test_patterns_are_read_as_in_a_gitignore(pattern: str, path: str, where: str) -> None:
    assert matching((pattern,), path) == where
