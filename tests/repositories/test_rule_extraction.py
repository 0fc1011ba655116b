"""Which sentences are mechanical rules, and which only look like one."""

from __future__ import annotations

import time

import pytest

from agentsignals.repositories.rules import Rule, extract, read


def rules(text: str) -> list[Rule]:
    return extract(read(text)).rules


def short(rule: Rule) -> str:
    """`run commit make test`, with what it is instead of, its paths and its condition."""
    parts = [rule.kind, rule.when, " | ".join(rule.commands + rule.branches)]
    parts += ["not " + " | ".join(rule.instead_of)] if rule.instead_of else []
    parts += ["on " + " | ".join(rule.paths)] if rule.paths else []
    parts += [f"[{rule.condition}]"] if rule.condition else []
    return " ".join(part for part in parts if part)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Before committing, run `make test`.", ["run commit make test"]),
        ("Run `make lint` and `make test` before every commit.", ["run commit make lint", "run commit make test"]),
        ("Run `tox` or `nox` before committing.", ["run commit tox | nox"]),
        ("**Before you push**, run `npm test`.", ["run push npm test"]),
        (
            "Always run `npm run build && npm test` before opening a PR.",
            ["run push npm run build", "run push npm test"],
        ),
        ("After every code change run `cargo test`.", ["run change cargo test"]),
        ("After making changes, run `uv run ruff check --fix` to tidy up.", ["run change uv run ruff check --fix"]),
        ("Before finishing, run `make check` and mend what fails.", ["run done make check"]),
        ("At the end of any task, run `make check`.", ["run done make check"]),
        ("After changing `api.proto`, run `make gen`.", ["run edit make gen on api.proto"]),
        ("If you edit files in `schema/`, run `make gen`.", ["run edit make gen on schema/"]),
        ("Don't commit without running `cargo fmt`.", ["run commit cargo fmt"]),
        ("Never push before `npm test` passes.", ["run push npm test"]),
        ("Don't forget to run `make docs` before committing.", ["run commit make docs"]),
        ("Never run `git push --force`.", ["never_run git push --force"]),
        ("Do NOT use `npm test` or `vitest` directly.", ["never_run npm test | vitest"]),
        ("Do not touch `vendor/` or `third_party/`.", ["never_edit on vendor/ | third_party/"]),
        ("**Never edit `src/api.gen.ts` by hand** — run the generator.", ["never_edit on src/api.gen.ts"]),
        ("Use `pnpm`, not `npm`.", ["use pnpm not npm"]),
        ("Always use uv instead of pip.", ["use uv not pip"]),
        ("Do not use `pip`; always use `uv`.", ["use uv not pip"]),
        ("Instead of `grep`, use `rg`.", ["use rg not grep"]),
        ("Use `bun` for all package operations.", ["use bun not npm | pnpm | yarn"]),
        ("Never commit directly to main.", ["never_branch commit | main"]),
        ("Stage what you mean, and never push to `main` or `release`.", ["never_branch push | main | release"]),
        ("Always prefix shell commands with `rtk`.", ["prefix rtk"]),
        ("Commit messages must follow Conventional Commits.", ["message conventional commits"]),
        ("Never add a Co-Authored-By trailer.", ["message no co-author"]),
    ],
)
def test_a_form_is_understood(sentence: str, expected: list[str]) -> None:
    assert [short(rule) for rule in rules(sentence)] == expected


@pytest.mark.parametrize(
    ("sentence", "condition"),
    [
        ("Do not use `yarn` unless the person asks.", "unless the person asks"),
        ("Do not use `git stash` on shared checkouts.", "on shared checkouts"),
        ("Never run `git reset --hard` without asking.", "without asking"),
        ("Never edit `src/` to make tests pass.", "to make tests pass"),
        ("When testing the server, never run `make deploy`.", "When testing the server"),
        ("For backend changes, run `make test` before committing.", "For backend changes"),
        ("Run `make test` before committing if Python changed.", "if Python changed"),
    ],
)
def test_what_narrows_a_rule_is_its_condition(sentence: str, condition: str) -> None:
    assert [rule.condition for rule in rules(sentence)] == [condition]


@pytest.mark.parametrize(
    "sentence",
    [
        "CI must run `make all` before every commit.",
        "The hook runs `make all` before a commit.",
        "Tests run before commit with `pytest`.",
        "You can run `make all` before committing.",
        "Consider running `make all` before committing.",
        "Prefer `rg` over `grep`.",
        "Normal users never edit `.env`.",
        "Release engineers must not run `npm publish`.",
        "Use `npm run dev` to start the server.",
        "Use `logger.info` instead of `console.log`.",
        "Don't change `parse()`.",
        "After schema changes, run `make gen`.",
        "Write tests before committing.",
        "Never commit secrets.",
        'The old guide was "never use `npm` in this project".',
        "~~Never use `yarn`.~~",
        "> Never use `yarn`.",
        "| Never use `yarn`. | always |",
        "<!-- Never use `yarn`. -->",
        "```bash\nnever use `yarn`\n```",
        "Text.\n\n    Never use `yarn`.",
        "## Examples\n\n- Never use `yarn`.",
        "Bad example:\n\n- Never use `yarn`.",
    ],
)
def test_what_only_looks_like_a_rule_is_none(sentence: str) -> None:
    assert rules(sentence) == []


def test_what_stands_above_an_item_is_part_of_it() -> None:
    text = "## Before committing\n- `make lint`\n- Run `make test`\n\n### Do not:\n- Use `npm`\n"
    text += "\n### Never run:\n- `git clean`\n"
    assert [(rule.line, short(rule)) for rule in rules(text)] == [
        (2, "run commit make lint"),
        (3, "run commit make test"),
        (6, "never_run npm"),
        (9, "never_run git clean"),
    ]


def test_a_code_block_belongs_to_the_sentence_that_ends_in_a_colon_for_it() -> None:
    assert [short(r) for r in rules("Run tests after each change:\n```bash\nmake test  # all\n```")] == [
        "run change make test"
    ]
    assert rules("Run tests after each change:\n\nas you like\n\n```bash\nmake test\n```") == []
    assert rules("Run one of these after each change:\n```bash\nmake test\nmake check\n```") == [], (
        "which one, nobody says"
    )


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
