"""anticipation.first_tool_precision."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent, TurnKind
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, explain, measure
from agentsignals.views.session import SessionView
from tests.build import Part, call, event, say, user, view
from tests.signals.ask import Case, absent, detail, evidence, lines, value

PATH = "anticipation.first_tool_precision"
EDIT = call("Edit", path="src/a.py")
LISTING = call("Bash", command="ls src")


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([call("Read", path="a.py")], "no_edit"),
        ([call("Read", path="a.py"), call("Write", path="/home/me/.claude/plans/p.md")], "no_edit"),
        ([LISTING, call("Bash", command="sed -i s/a/b/ a.py")], "no_substantive_call"),
    ],
)
def test_without_an_edit_or_a_substantive_call_it_does_not_apply(parts: list[Part], why: str) -> None:
    assert absent(view(user("go"), *parts, cwd="/home/me/app"), PATH) == ("not_applicable", why)


# What was asked: how vaguely, in which language, and whether the work stayed with it.

VAGUE = "anticipation.prompt_underspecification"
DRIFT = "anticipation.scope_drift"
LANGUAGE = "chat.prompt_language"


def parts_of(text: str) -> tuple[float, float, float]:
    found = detail(view(user(text)), VAGUE)
    return found["L"], found["R"], found["O"]


def test_the_score_weighs_length_reference_and_outcome() -> None:
    vague, precise = view(user("fix it")), view(user("In `a.py` " + "word " * 40 + "the parser should return None."))
    assert value(vague, VAGUE) == 1.0
    assert detail(vague, VAGUE)["prompt_quality"] == 0.0
    assert value(precise, VAGUE) == 0.0
    half = view(user("one two three four five six seven eight nine ten"))
    assert value(half, VAGUE) == pytest.approx(0.4 * 30 / 35 + 0.6)
    assert lines(half, VAGUE) == [1]
    told = [i.excerpt for i in evidence(precise, VAGUE).items]
    assert [t.split("”")[0] for t in told[1:3]] == ["reference: “`a.py`", "outcome: “should"]


@pytest.mark.parametrize(
    "named",
    [
        "src/parser.py",
        "parser.py",
        "package.json",
        "`lock`",
        "parseLine",
        "ParserError",
        "parse_line",
        "parse()",
        "--verbose",
        "https://example.org/a",
        "#123",
        "ENT-207",
        "PR 41",
        "issue #7",
        "branch fix/lock",
        "commit 97d5530",
        "97d55301a",
        "@docs/a",
        "[Image #1]",
        "```\nx\n```",
        "Traceback (most recent call last)",
    ],
)
def test_something_concrete_is_a_reference(named: str) -> None:
    assert parts_of(f"look at {named} now")[1] == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "review the branch",
        "make it work with GitHub and JavaScript",
        "use UTF-8 e.g. everywhere",
        "fix it. then push.",
        "fix and/or remove it",
        "a well-known decade - faced",
        "in 2024 12345678 times... ok",
        "what about Node.js",
        "an e-mail to the PR people",
    ],
)
def test_words_that_only_look_concrete_are_no_reference(text: str) -> None:
    assert parts_of(text)[1] == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it should stop", 0.0),
        ("make sure it stops", 0.0),
        ("when it stops then start it", 0.0),
        ("clean it up", 1.0),
        ("the shoulder needs care", 1.0),
        ("why is it slow?", 0.5),
        ("why does it return that?", 0.0),
        ('it says "you must"', 1.0),
    ],
)
def test_an_outcome_is_told_by_its_words_and_a_question_asks_for_half_of_one(text: str, expected: float) -> None:
    assert parts_of(text)[2] == expected


def languages(*turns: tuple[str, TurnKind]) -> list[str]:
    found = measure(view(*(user(text, kind) for text, kind in turns)))
    return [v.detail if isinstance(v := r.value, Absent) else v for r in found if r.signal.path == LANGUAGE]


def test_each_turn_has_a_language_where_its_own_words_tell_one() -> None:
    assert languages(
        ("please fix the parser of the app", "prompt"),
        ("Kannst du die Tests noch einmal prüfen?", "prompt"),
        ("このテストを直してください。他のファイルは変えないでください。", "prompt"),
        ("commit", "prompt"),
        ("go test ./internal/... failing", "prompt"),
        ("`please fix the parser of the app, it is not for you`", "prompt"),
        ("```\nthis is the code of the app and it is not for you\n```", "prompt"),
    ) == ["en", "de", "ja", "under_20_characters", "n_too_small", "under_20_characters", "under_20_characters"]


def edits(*paths: str) -> list[Part]:
    return [call("Edit", path=path) for path in paths]


@pytest.mark.parametrize(
    ("said", "touched", "expected"),
    [
        ("fix src/a.py", ["src/a.py"], 1.0),
        ("fix a.py", ["src/a.py", "src/b.py", "c.md"], 3.0),
        ("fix the parse_line helper", ["src/parse_line.py", "src/b.py"], 2.0),
        ("fix a.py.", ["a.py"], 1.0),
        ("see (`src/a.py:12`)", ["src/a.py"], 1.0),
        ("fix @src/a.py", ["src/a.py"], 1.0),
        (
            "fix a.py",
            ["a.py", "uv.lock", "package-lock.json", "dist/x.js", "tmp/n.txt", "a.pb.go", "/home/you/x.py"],
            1.0,
        ),
        ("fix it", [], 0.0),
        ("fix it", ["yarn.lock"], 0.0),
    ],
)
def test_drift_is_what_was_changed_over_what_of_it_was_named(said: str, touched: list[str], expected: float) -> None:
    one = view(user(said), *edits(*touched), cwd="/home/me/app")
    assert value(one, DRIFT) == expected
    assert detail(one, DRIFT)["method"] == "mention"


def test_any_turn_may_name_a_file_and_edits_are_the_evidence() -> None:
    one: SessionView = view(user("mind b.py"), *edits("a.py"), user("and b.py"), *edits("b.py"))
    assert value(one, DRIFT) == 2.0
    assert detail(one, DRIFT)["unrequested"] == 1
    assert (lines(one, DRIFT), lines(one, DRIFT, "counter")) == ([4], [2])


@pytest.mark.parametrize("unit", ["a.", "a/", "aA", "a_", "[Image", "`a", "-", "#", "0a", "PR ", " at", "when a ", "."])
def test_hostile_prompts_cost_no_more_than_their_length(unit: str) -> None:
    one = view(user(unit * (60_000 // len(unit))), *edits("a.py"))
    assert isinstance(value(one, VAGUE), float | Absent)
    assert isinstance(value(one, DRIFT), float | Absent)


# Scope, told offline: anticipation.unrequested_files, anticipation.conflation_turn, dynamics.gd_actions.

FILES, CONFLATION, ACTIONS = "anticipation.unrequested_files", "anticipation.conflation_turn", "dynamics.gd_actions"


def scope_edits(*paths: str) -> list[Part]:
    return [call("Edit", path=path) for path in paths]


SPREAD = scope_edits("x/1.py", "y/2.py", "y/3.py")


def test_without_changes_or_named_files_nothing_is_known_of_the_request() -> None:
    assert absent(view(user("fix a.py")), FILES) == ("not_applicable", "no_edit")
    assert absent(view(user("fix it"), *scope_edits("a.py")), FILES) == ("not_computable", "no_reference")
    reset = view(user("fix a.py"), call("Bash", command="git restore ."))
    assert absent(reset, FILES) == ("not_applicable", "no_edit")


@pytest.mark.parametrize(
    "parts",
    [
        [user("fix it"), *scope_edits("src/a.py"), user("now add the exporter as well"), *SPREAD],
        [user("fix it"), *scope_edits("src/a.py"), user("ok"), *SPREAD[:2]],
        [
            user("fix it"),
            *scope_edits("src/a.py"),
            user("ok"),
            *scope_edits("src/b.py", "src/c.py", "src/d.py"),
        ],
        [user("fix it, mind x/ and y/"), *scope_edits("src/a.py"), user("ok"), *SPREAD],
        [user("plan it"), say("done"), user("ok"), *SPREAD],
        [user("fix it"), *scope_edits("x/a.py", "y/a.py"), user("ok"), *SPREAD],
    ],
    ids=["new task", "two files", "same folder", "named folders", "work begins", "folders worked in"],
)
def test_work_that_was_asked_for_or_stays_near_does_not_conflate(parts: list[Part]) -> None:
    assert absent(view(*parts), CONFLATION) == ("none_found", "method files")


PLANNED = [user("Write into CLAUDE.md how to split the parser"), *scope_edits("CLAUDE.md"), say("Shall I go on?")]
FAR = scope_edits("packages/lexer/scan.py", "packages/tree/node.py", "packages/tree/walk.py", "packages/printer/out.py")


@pytest.mark.parametrize(
    "said",
    [
        "Yes, exactly, please implement this",
        "Now do all of it, every package",
        "ok go ahead",
        "Great. Next step: build the three parts as you described them",
        "yes",
        "Sounds good, make it so and don't stop for questions",
        "Only stop when all parts are built",
        "Just build everything, nothing fancy",
        "Implement the plan and/or ask me, e.g. about names",
        "Bitte alles so umsetzen wie beschrieben",
        "お願いします",
    ],
)
def test_work_asked_for_in_any_words_is_not_unrequested(said: str) -> None:
    """The plan named one file. What a later prompt asks for without naming a file is not work nobody asked for."""
    one = view(*PLANNED, user(said), *FAR)
    assert value(one, FILES) == {"n": 0, "touched": 1, "first_turn": None}
    assert (value(one, DRIFT), value(one, ACTIONS)) == (1.0, 0.0)
    assert absent(one, CONFLATION) == ("none_found", "method files")
    open_only = view(user("build a parser"), *FAR, user(said), *FAR)
    assert [absent(open_only, path)[0] for path in (FILES, DRIFT, ACTIONS)] == ["not_computable"] * 3


@pytest.mark.parametrize(
    "said",
    [
        "Thanks. Only fix the typo in its heading and change nothing else",
        "Fix the heading. Please don't touch any other files",
        "just correct the heading",
        "Fix the heading and leave everything else as it is",
        "Fix the heading without changing anything else",
        "Fix the heading, no other changes",
        "Fix the heading of CLAUDE.md",
    ],
)
def test_work_beyond_a_limit_is_unrequested(said: str) -> None:
    one = view(*PLANNED, user(said), *FAR)
    assert value(one, FILES) == {"n": 4, "touched": 5, "first_turn": 1}
    assert (value(one, DRIFT), value(one, ACTIONS)) == (5.0, 0.8)
    assert value(one, CONFLATION) == 1 if "CLAUDE" not in said else absent(one, CONFLATION)


def test_failed_edits_are_actions_but_make_no_scope() -> None:
    failed = call("Edit", path="web/e.ts", status="error", result="x")
    one = view(user("fix a.py"), failed, *scope_edits("src/a.py"))
    assert (detail(one, ACTIONS)["num"], detail(one, ACTIONS)["den"]) == (1, 2)
    assert absent(view(user("fix a.py"), failed), ACTIONS) == ("not_computable", "no_reference")
    assert absent(view(user("fix it")), ACTIONS) == ("not_applicable", "no_edit")


# dynamics.objections and anticipation.session_attribution.

OBJECTIONS, ATTRIBUTION = "dynamics.objections", "anticipation.session_attribution"
NO = user("no, that is not what I asked for")
NONE = Absent("none_found", "x")


def turns(n: int) -> list[Part]:
    return [part for k in range(n) for part in (user(f"step {k}"), say("ok"))]


def test_without_turns_or_in_another_language_nobody_knows_who_objected() -> None:
    assert absent(view(say("a")), OBJECTIONS) == ("not_computable", "zero_denominator")
    foreign = view(user("перепиши этот модуль заново"), say("a"), user("нет, это совсем не то, что нужно"))
    assert absent(foreign, OBJECTIONS) == ("not_computable", "language")


CALM: dict[str, Any] = {
    "session_outcome": Absent("none_found", "no_verdict"),
    "objections": {"corrections": [], "pushback": []},
    "user_turn_count": 6,
    "prompt_underspecification": 0.3,
    "clarification_sought": False,
    "assumption_count": 0,
    "first_tool_precision": True,
    "scope_drift": 1.0,
    "unrequested_files": {"n": 0, "touched": 2, "first_turn": None},
    "conflation_turn": NONE,
    "drift_onset_turn": NONE,
}


def corrected(*at: int) -> dict[str, Any]:
    return {"objections": {"corrections": list(at), "pushback": list(at)}}


def pushed(n: int) -> dict[str, Any]:
    return {"objections": {"corrections": [], "pushback": list(range(1, n + 1))}}


WIDE = {"scope_drift": 2.5, "unrequested_files": {"n": 3, "touched": 5, "first_turn": 2}}
VAGUE_CASE = {"prompt_underspecification": 0.75}


def judged(**given: Any) -> tuple[Any, dict[str, Any], Any]:
    return explain(by_path(ATTRIBUTION), view(*turns(6)), {**CALM, **given})


@pytest.mark.parametrize(
    ("given", "label", "rule"),
    [
        # 1: trouble after a vague prompt, with a sign that it was the prompt.
        ({**VAGUE_CASE, **corrected(2)}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, **corrected(4), "clarification_sought": True}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, **pushed(2), "assumption_count": 1}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, "session_outcome": "explicitly_rejected", "assumption_count": 1}, "underspecified_prompt", 1),
        ({**VAGUE_CASE, **corrected(1), **WIDE, "conflation_turn": 1}, "underspecified_prompt", 1),
        # 2: both misread and widened: the earlier, and of two at once the misreading.
        ({**corrected(1), **WIDE}, "agent_misunderstood", 2),
        ({**corrected(2), **WIDE}, "agent_misunderstood", 2),
        ({**corrected(2), **WIDE, "conflation_turn": 1}, "scope_conflation", 2),
        ({**corrected(2), **WIDE, "conflation_turn": 1, "drift_onset_turn": 1}, "agent_misunderstood", 2),
        # 3: a clear prompt misread.
        (corrected(1), "agent_misunderstood", 3),
        (corrected(2), "agent_misunderstood", 3),
        ({**pushed(2), "first_tool_precision": False, "drift_onset_turn": 2}, "agent_misunderstood", 3),
        ({"session_outcome": "restarted_same_task", "first_tool_precision": False, "drift_onset_turn": 1},
         "agent_misunderstood", 3),
        # 4: widened, and somebody minded.
        ({**WIDE, **pushed(2)}, "scope_conflation", 4),
        ({**WIDE, "session_outcome": "explicitly_rejected"}, "scope_conflation", 4),
        ({"conflation_turn": 4, **corrected(5)}, "scope_conflation", 4),
        ({**VAGUE_CASE, **corrected(3), **WIDE}, "scope_conflation", 4),
        # 5: no trouble, and accepted.
        ({"session_outcome": "accepted"}, "correct_anticipation", 5),
        ({"session_outcome": "accepted", **pushed(1)}, "correct_anticipation", 5),
        ({"session_outcome": "accepted", "first_tool_precision": Absent("not_applicable", "no_edit")},
         "correct_anticipation", 5),
        ({"session_outcome": "accepted", **VAGUE_CASE, "assumption_count": 3}, "correct_anticipation", 5),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_names_the_session(given: dict[str, Any], label: str, rule: int) -> None:
    found, detail, why = judged(**given)
    assert (found, detail["rule"]) == (label, rule)
    assert why.rules[0].startswith(f"rule {rule}: ")


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({}, "nothing"),
        # Files that nobody named are no verdict where nobody minded.
        (WIDE, "nothing"),
        ({"conflation_turn": 4}, "nothing"),
        ({**WIDE, "user_turn_count": 1}, "nothing"),
        (corrected(3), "trouble"),
        # A vague prompt alone blames nobody.
        ({**VAGUE_CASE, **corrected(3)}, "trouble"),
        ({**VAGUE_CASE}, "nothing"),
        ({"scope_drift": 2.5}, "nothing"),
        ({"scope_drift": 2.0, "unrequested_files": WIDE["unrequested_files"]}, "nothing"),
        ({**pushed(2), "first_tool_precision": False, "drift_onset_turn": 3}, "trouble"),
        ({"session_outcome": "accepted", "first_tool_precision": False}, "nothing"),
        ({"session_outcome": "accepted", **corrected(4)}, "trouble"),
        # In one turn nobody could object: a rejected outcome blames no one.
        (
            {
                "user_turn_count": 1,
                "session_outcome": "explicitly_rejected",
                **VAGUE_CASE,
                "assumption_count": 2,
            },
            "trouble",
        ),
        ({**corrected(1), "prompt_underspecification": Absent("not_applicable", "slash_command")}, "trouble"),
    ],
)
def test_where_no_rule_holds_the_session_is_inconclusive(given: dict[str, Any], holds: str) -> None:
    assert judged(**given)[0] == Absent("not_computable", f"inconclusive: {holds} holds")


def test_what_is_missing_is_said_and_what_was_looked_for_in_vain_is_not_missing() -> None:
    gone = Absent("not_computable", "no_reference")
    detail = judged(session_outcome="accepted", scope_drift=gone, unrequested_files=gone)[1]
    assert detail["missing"] == [
        "scope_drift", "unrequested_files", "task_paraphrase_accuracy", "plan_optimality",
    ]  # fmt: skip
    assert detail["predicates"] == {
        "trouble": False,
        "vague_prompt": False,
        "misunderstood": False,
        "scope_widened": False,
        "anticipated": True,
    }


def test_without_outcome_and_objections_nothing_is_judged() -> None:
    found = judged(session_outcome=NONE, objections=NONE)[0]
    assert isinstance(found, Absent)
    assert found.reason == "dependency_null"
    assert judged(session_outcome=NONE, **corrected(1))[0] == "agent_misunderstood"
    assert judged(session_outcome="accepted", objections=NONE)[0] == "correct_anticipation"


def test_evidence_shows_the_turns_that_corrected_and_the_inputs() -> None:
    why = judged(**corrected(1, 3))[2]
    assert [i.line for i in why.items if i.role == "support"] == [3, 7]
    assert any("anticipation.prompt_underspecification = 0.3" in i.excerpt for i in why.items if i.role == "input")


def test_it_can_be_told_from_the_values_alone() -> None:
    """Across sessions only values are at hand, and no turns."""
    declared = by_path(ATTRIBUTION)
    assert declared.scope == "history"
    found = explain(declared, view(), {**CALM, **corrected(1)})[0]
    assert not isinstance(found, Measured | Absent)
    assert found == "agent_misunderstood"


CASES = (
    Case("the first substantive call and the edits are the evidence",
         view(user("go"), LISTING, call("Read", path="src/b.py"), EDIT), PATH,
         detail={"file": "src/b.py", "class": "read", "same_dir": True}, support=[3], denominator=[4]),
    Case("files that no turn names are counted with the first turn that changed one",
         view(user("fix a.py in lib/"), *scope_edits("src/a.py", "lib/x.py"), user("only fix a.py"),
         *scope_edits("web/b.py", "c.py", "c.py")), FILES, {"n": 2, "touched": 4, "first_turn": 1},
         support=[5, 6, 7], counter=[2, 3]),
    Case("when all files are named there is no first turn", view(user("fix a.py"), *scope_edits("src/a.py")), FILES,
         {"n": 0, "touched": 1, "first_turn": None}),
    Case("a later response that spreads into new folders unasked conflates",
         view(user("fix it"), *scope_edits("src/a.py"), user("change nothing else"), *SPREAD), CONFLATION, 1,
         {"method": "files", "files": 3, "confidence": "low"}, support=[3, 4, 5, 6]),
    Case("an objection that names a file is no new task however long",
         view(user("fix it"), *scope_edits("src/a.py"), user("no, that is not what I asked for, a.py is wrong"),
         *SPREAD), CONFLATION, 1),
    Case("one turn cannot conflate", view(user("fix it"), *SPREAD), CONFLATION, Absent("not_applicable", "one_turn")),
    Case("one turn cannot conflate", view(*SPREAD), CONFLATION, Absent("not_applicable", "no_turn")),
    Case("actions outside what was named or changed first are counted by call",
         view(user("fix b.py"), *scope_edits("src/a.py", "src/b.py"), user("go on, also lib/"), *scope_edits("src/c.py",
         "lib/d.py", "web/e.ts", "web/e.ts")), ACTIONS, pytest.approx(2 / 6),
         {"num": 2, "den": 6, "method": "fallback", "confidence": "low"}, support=[7, 8]),
    Case("tests beside what is in scope and calls through the shell are in scope too",
         view(user("fix a.py"), *scope_edits("src/a.py"), user("z.py, too"), *scope_edits("src/__tests__/a.test.py"),
         call("Bash", command="sed -i s/a/b/ src/z.py"), call("Bash", command="ls web")), ACTIONS,
         some={"num": 0, "den": 3}),
    Case("what one turn changed is in scope", view(user("fix 1.py"), *SPREAD), ACTIONS, 0.0),
    Case("corrections and pushback are told by turn",
         view(user("go"), say("a"), NO, say("b"), user("it still doesn't work"), event("interrupt"), user("ok")),
         OBJECTIONS, {"corrections": [1], "pushback": [1, 2, 3]}, support=[3, 5, 7, 3]),
    Case("a last response that was cut counts behind the last turn", view(user("go"), say("a"), event("interrupt")),
         OBJECTIONS, {"corrections": [], "pushback": [1]}),
    *(Case("the first file looked at is one that changes", view(user("go"), *parts, cwd="/home/me/app"), PATH, expected,
           some={"same_dir": same_dir})
      for parts, expected, same_dir in [
        ([call("Read", path="src/a.py"), EDIT], True, True),
        ([call("Read", path="src/b.py"), EDIT], False, True),
        ([call("Read", path="README.md"), EDIT], False, False),
        (
            [LISTING, call("Grep", path="src"), call("Bash", command="git log"), call("Read", path="src/a.py"), EDIT],
            True,
            True,
        ),
        ([call("Read", path="gone.py", status="error"), call("Read", path="src/a.py"), EDIT], False, False),
        ([call("Grep", path="src/a.py"), EDIT], True, True),
        ([EDIT], True, True),
        ([call("Read", path="/home/me/shot.png"), call("Read", path="src/a.py"), EDIT], True, True),
        ([call("Read", path="src/b.py", thread="agent-1"), EDIT], True, True),
        ([call("Read", path="src"), EDIT], True, True),
        ([call("Read", path="lib"), call("Read", path="lib/b.py"), EDIT], False, False),
        ([call("Read", path="sr"), EDIT], False, False),
      ]),
    *(Case("what is no prompt in english is not called vague", view(*parts), VAGUE, Absent(*reason))
      for parts, reason in [
        ([], ("not_applicable", "no_turns")),
        ([user("deploy", "slash_command")], ("not_applicable", "slash_command")),
        ([user("# Plan", "plan_handoff")], ("not_applicable", "plan_handoff")),
        ([user("", "attachment")], ("not_applicable", "attachment")),
        ([user("")], ("not_applicable", "attachment_only")),
        ([user("hello claude!")], ("not_applicable", "greeting")),
        ([user("Kannst du bitte die Tests noch einmal laufen lassen?")], ("not_computable", "language: de")),
        ([user("テストを修正してください")], ("not_computable", "language")),
      ]),
    *(Case("without a named file drift is unknown", view(user(said), *edits("src/main.py", "a.py"), cwd="/home/me/app"),
           DRIFT, Absent("not_computable", detail_))
      for said, detail_ in [
        ("fix it", "no_reference"),
        ("fix the main module", "no_reference"),
        ("fix other.py", "zero_denominator"),
        ("fix data.py", "zero_denominator"),
      ]),
    *(Case("generated lock and scratch files are nobodys wish", view(user("fix a.py"), *scope_edits("a.py", path)),
           FILES, {"n": 0, "touched": 1, "first_turn": None})
      for path in ["package-lock.json", "dist/a.js", "api_pb2.py", "yarn.lock", "scratch.py", "a.snap"]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
