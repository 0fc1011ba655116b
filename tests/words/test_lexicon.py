"""Cleaning, and the reaction patterns with their traps (design/signals.md#word-lists)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.words import lexicon
from agentsignals.words import lexicon as reactions
from agentsignals.words.lexicon import (
    acceptance,
    clean,
    corrections,
    failure_report,
    head,
    is_english,
    rejection,
    revert_all,
    seed_corrections,
    words,
)
from agentsignals.words.text import lowered
from tests.quick import each_row

CORRECTS = {
    "still not quite right": "not_right",
    "no, use the other helper": "no_initial",
    "No. That's not what I asked for": "no_initial",
    "nope, still the same branch": "no_initial",
    "nah let's roll back, they don't really need to exist": "no_initial",
    "nooo, the left one": "no_initial",
    "No, ignore this part": "no_initial",
    "no revert those changes, I think it's correct if it's part of the commit": "no_initial",
    "that's not right, the hook runs after": "not_right",
    "this is not correct: see line 4": "not_right",
    "claude stop is not correct, that is at the end": "not_right",
    "that isn't what I wanted": "isnt_right",
    "this is wrong": "is_wrong",
    "you changed the wrong file.": "wrong_target",
    "undo that": "undo_revert",
    "revert the last change": "undo_revert",
    "can you revert that?": "undo_revert",
    "ok, back out of it": "undo_revert",
    "put it back the way it was": "put_back",
    "actually, let's do X instead": "actually_redirect",
    "Actually the API uses POST not GET": "actually_redirect",
    "wait, why are we deleting this?": "wait",
    "wait no, that is the old one": "wait",
    "stop. you are editing generated code": "stop",
    "please stop adding comments": "stop",
    "I said X not Y": "i_said_meant",
    "I meant the other function": "i_said_meant",
    "sorry, my point is: the cli writes the file": "i_said_meant",
    "I didn't ask for a refactor": "i_said_meant",
    "you missed the second call site": "you_erred",
    "you forgot to update the tests": "you_erred",
    "you misunderstood the flag": "you_erred",
    "don't check this in": "dont_do",
    "let's not go there": "dont_do",
    "never mind, skip the tests": "never_mind",
    "on second thought, skip it": "never_mind",
    "forget about that, try Y": "never_mind",
    "again, this is not correct: foo": "again_repeat",
}

CORRECTS_NOTHING = [
    "no problem, go ahead",
    "No worries!",
    "no need to run the tests",
    "no issues found, commit it",
    "no changes needed",
    "No, that's fine",
    "no, then it's good",
    "actually great work",
    "Actually that's perfect, thanks",
    "does it actually work?",
    "wait for CI and then merge",
    "wait until the build is green",
    "the waitlist page stops rendering",
    "stop the server and restart it",
    "can you check the stop hook?",
    "on stop hook I want a notification",
    "add an undo button to the toolbar",
    "Undo support: add a history stack",
    "implement the revert command",
    "what does revert do here?",
    "can you add an e2e test for rollback?",
    "is this the wrong file?",
    "why did you use a list here?",
    "why is `show` printing no checkpoints here on the main branch?",
    "there are no tests for this, can you add some?",
    "there is no overlap in files",
    "is there no way to recover it?",
    "the error says no such file",
    "the docs are wrong about this if the env is unset",
    "I don't think we need suffixes",
    "I don't know how this works",
    "don't worry about backwards compat",
    "don't change anything, just let me know",
    "Print:\nYes. Ignore this warning\nNo.",
    "Low Severity\n\nThis is wrong because the flag is not checked. Actually it should be",
]


@each_row(("text", "pattern"), CORRECTS.items())
def test_a_correction_is_found_by_its_pattern(text: str, pattern: str) -> None:
    found = corrections(text)
    assert pattern in [name for name, _ in found]
    assert all(matched and matched in head(text) for _, matched in found)


@each_row("text", CORRECTS_NOTHING)
def test_the_trap_is_no_correction(text: str) -> None:
    assert corrections(text) == ()


def test_the_literal_keywords_of_the_seed_fall_into_most_traps() -> None:
    caught = [t for t in CORRECTS_NOTHING if seed_corrections(t)]
    assert len(caught) > 20 and "no problem, go ahead" in caught
    assert seed_corrections("you missed the second call site") is None


def test_every_correction_pattern_has_a_case() -> None:
    assert {p.name for p in reactions.CORRECTIONS} == set(CORRECTS.values()) | reactions.WEAK


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("why did you use a list here?", "why_did_you"), ("use a list instead", "instead_redirect")],
)
def test_weak_patterns_count_only_when_a_tool_was_refused(text: str, pattern: str) -> None:
    assert corrections(text, "prompt") == ()
    assert [name for name, _ in corrections(text, "rejection_feedback")] == [pattern]


@pytest.mark.parametrize("kind", ["plan_handoff", "attachment"])
def test_words_the_person_did_not_write_react_to_nothing(kind: str) -> None:
    assert corrections("no, use the other helper", kind) == ()
    assert rejection("undo that", kind) is None
    assert failure_report("tests are failing", kind) is None
    assert acceptance("thanks!", kind) is None


def test_a_no_far_from_the_start_answers_something_else() -> None:
    assert corrections("x" * 150 + ". no, use the other") != ()
    assert corrections("x" * 170 + ". no, use the other") == ()


def test_words_behind_the_head_are_not_searched() -> None:
    long = "please add a page for the settings of the account " * 7
    assert corrections(long[:200] + ". that is wrong") != ()
    assert corrections(long + ". that is wrong") == ()


SAID = sorted({w for t in (*CORRECTS, *CORRECTS_NOTHING) for w in t.split()} | {". ", ", ", "crash", "fails", "thx"})


@given(st.lists(st.sampled_from(SAID), max_size=9).map(" ".join))
def test_a_pattern_is_never_hidden_by_its_guard(text: str) -> None:
    """Without one of its trigger words a pattern can't match; otherwise the guard would change what is measured."""
    low = lowered(head(text))
    for pattern in reactions.ALL:
        if pattern.triggers.isdisjoint(words(text)):
            assert pattern.find(low, frozenset(pattern.also)) is None, pattern.name
        if pattern.anywhere is not None and pattern.also and pattern.also.isdisjoint(words(text)):
            assert pattern.anywhere.search(low) is None, pattern.name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("fine. wait, no", (5, 10)),
        ("wait", (0, 4)),
        ("please wait!", (0, 11)),
        ("ok so well wait.", (0, 15)),
        ("ok so well but wait.", None),
        ("I wait.", None),
        ("fine;\n\n wait", (5, 12)),
    ],
)
def test_a_clause_begins_behind_a_stop_and_up_to_three_openers(text: str, found: tuple[int, int] | None) -> None:
    wait = next(p for p in reactions.CORRECTIONS if p.name == "wait")
    assert wait.find(text.lower(), words(text)) == found


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("NO, use the other", "NO"),
        ("STO\u0130: WRONG F\u0130LE.", "WRONG F\u0130LE"),
        ("Nope. Not \u212a", "Nope"),
    ],
)
def test_words_are_told_as_they_were_written(text: str, matched: str) -> None:
    assert [said for _, said in corrections(text)] == [matched]


@given(st.text())
def test_in_lower_case_every_character_keeps_its_place(text: str) -> None:
    assert len(lowered(text)) == len(text)
    found = re.search("[a-z]", text, re.IGNORECASE)
    also = re.search("[a-z]", lowered(text))
    assert (found and found.span()) == (also and also.span())


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("it's still crashing", True),
        ("this still doesn't work", True),
        ("tests are failing", True),
        ("I get a 404 now", True),
        ("same error, try again", True),
        ("I still see the same error", True),
        ("the stop hook didn't fire", True),
        ("I'm getting this error: x", True),
        ("that did not help", True),
        ("add a test for the failing case later", False),
        ("handle errors in the parser", False),
        ("great, it works", False),
    ],
)
def test_failure_reports(text: str, failed: bool) -> None:
    assert (failure_report(text) is not None) == failed


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("thanks!", True),
        ("perfect, commit this", True),
        ("great. now do B", True),
        ("LGTM", True),
        ("that works", True),
        ("commit this", True),
        ("Commit and push.", True),
        ("ok, looks good", True),
        ("push it", True),
        ("great, but the button is gone", False),
        ("great but the button is gone", False),
        ("is that great?", False),
        ("why does that work?", False),
        ("commit hooks are not firing", False),
        ("push notifications are needed", False),
        ("add the flag to the parser, write a test. Commit and push.", False),
    ],
)
def test_acceptance(text: str, accepted: bool) -> None:
    assert (acceptance(text) is not None) == accepted


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("No.", "No."),
        ("nope", "nope"),
        ("undo that", "undo that"),
        ("please revert the last change, it is too slow", "please revert the last"),
        ("undo the last change and change the name", None),
        ("I don't like that", "I don't like that"),
        ("put it back", "put it back"),
        ("no, use the other helper", None),
        ("undo that and use a dict instead", None),
        ("no worries", None),
        ("implement the revert command", None),
    ],
)
def test_a_refusal_with_a_new_instruction_is_no_rejection(text: str, refused: str | None) -> None:
    assert rejection(text) == refused


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("revert everything", True),
        ("undo all your changes", True),
        ("let's start over", True),
        ("I ran git reset --hard", True),
        ("git checkout . please", True),
        ("revert the last change", False),
        ("start the server", False),
        ("git checkout ./src/a.py", False),
    ],
)
def test_taking_everything_back(text: str, found: bool) -> None:
    assert (revert_all(text) is not None) == found


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("look:\n```\nno, wrong\n```\nthanks", "look:\n \nthanks"),
        ("an open fence ```\nno", "an open fence"),
        ("run `git stop` now", "run \u2022 now"),
        ('it prints "no, wrong" here', "it prints \u2022 here"),
        ("it prints “no, wrong” here", "it prints \u2022 here"),
        ("see https://example.org/no?stop=1 please", "see please"),
        ("> no, wrong\nfine", "fine"),
        ("\u23ba ok\n\u23bf Error: no\nfine", "\u23ba ok\n \nfine"),
        ("2026-01-01T10:00:00Z stop\nfine", "fine"),
        ("=== RUN TestStop\n--- FAIL: TestStop\nfine", "fine"),
        ("- one\n- two", "- one\n- two"),
        ("@@ -1 +1 @@\n-stop\n+go\nfine", "fine"),
        ("don\u2019t", "don't"),
        ("a \t b", "a b"),
        ("", ""),
    ],
)
def test_cleaning_leaves_the_persons_words(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


def test_from_a_paste_marker_on_nothing_is_the_persons_voice() -> None:
    assert head("can you look?\nTraceback (most recent call last):\n stop") == "can you look?\n".rstrip() + "\n"
    assert head("Operation stopped by hook: no").strip() == ""


def test_the_head_of_a_huge_paste_is_short_and_cheap() -> None:
    log = "It doesn't seem to work\n" + "2026-01-01T10:00:00Z no wrong stop\n" * 2000
    assert head(log).strip() == "It doesn't seem to work"
    assert head("word " * 20_000) == ("word " * 64)[: lexicon.HEAD_CHARS]


def test_words_behind_a_long_fence_are_still_found() -> None:
    assert head("```\n" + "x = 1\n" * 2000 + "```\nno, the other file") == "no, the other file"


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("commit", True),
        ("please fix the failing test in the parser", True),
        ("run pytest bump version fix lint add coverage", True),
        ("исправь ошибку в парсере пожалуйста", False),
        ("パーサーのバグを直してください", False),
        ("füge bitte eine neue Seite hinzu und zeige dort alle offenen Rechnungen meiner Kunden an", False),
        ("añade una página nueva donde cada cliente pueda ver todas sus facturas pendientes del mes pasado", False),
        ("Das ist völlig falsch, schon wieder kaputt!", False),
        ("Ça ne marche toujours pas, c'est nul", False),
        ("non funziona, che schifo", False),
        ("löschen", False),
        ("não", False),
        ("不对", False),
        ("აბგ", False),
        ("ok 好", False),
        ("rename it to café → done", True),
        ("no — that’s wrong", True),
        ("wtf", True),
        ("", True),
    ],
)
def test_words_letters_and_scripts_tell_a_language(text: str, english: bool) -> None:
    assert is_english(text) is english


GOLD = Path(__file__).parents[3] / "shared" / "corpus" / "gold" / "prompts_gold.jsonl"


@pytest.mark.corpus
@pytest.mark.skipif(not GOLD.is_file(), reason="the corpus ../shared/corpus is not there")
def test_how_far_the_patterns_reach_on_labelled_prompts() -> None:
    """Against labels a model gave: few of the objections are found, and more of the found are objections than not."""
    found = missed = wrong = 0
    for line in GOLD.read_text("utf-8").splitlines():
        row = json.loads(line)
        if not row["turn"]:
            continue
        text, objects = row["text"], row["pushback_swechat4"] != "non_pushback"
        hit = bool(rejection(text) or corrections(text) or failure_report(text))
        found += hit and objects
        missed += objects and not hit
        wrong += hit and not objects
    assert (found, missed, wrong) == (8, 82, 6)
