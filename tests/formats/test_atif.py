"""The traps of ATIF steps, one test each (design/formats.md#harbor-and-atif)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.atif import FORMAT
from agentsignals.formats.head import Head
from agentsignals.model import MAIN, Attempt, Session
from tests.atif_steps import agent, call, document, reading, run, seen, used, user

# -- what is recognised ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "keys"),
    [
        (document(), ["session:s-1"]),
        (document(session_id=None), []),
        ({"schema_version": "ATIF-v1.0", "agent": {"tool_definitions": ["x" * 90_000]}}, []),
        ({"schema_version": 2, "steps": []}, None),
        ({"schema_version": "1.7", "steps": []}, None),
    ],
    ids=["named", "without an id", "steps behind the window", "a number", "another's version"],
)
def test_only_a_version_of_atif_is_atif(found: dict[str, Any], keys: list[str] | None) -> None:
    data = json.dumps(found).encode()
    claim = FORMAT.claims(Head(data[: 64 * 1024], "/r/agent/t.json", len(data) < 64 * 1024))
    assert (claim.keys if claim else None) == keys
    assert claim is None or claim.root == "/r/agent"


# -- usage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (used(100, 7, 60), (40, 7, 60, None, None)),
        (used(100, 7), (100, 7, None, None, None)),
        (used(100, 7, 60, cache_creation_input_tokens=30), (10, 7, 60, 30, None)),
        (used(100, 7, 60, cache_write_tokens=30), (10, 7, 60, 30, None)),
        (used(100, 7, 60, cache_creation_input_tokens=300), (40, 7, 60, 300, None)),
        (used(100, 55, 0, thoughts_tokens=40), (100, 55, 0, None, 40)),
        (used(10, 1, 60), (0, 1, 60, None, None)),
        (used("many", None, True), (None, None, None, None, None)),
    ],
    ids=[
        "cached inside",
        "not said",
        "written inside",
        "so too",
        "written beside",
        "thoughts",
        "contradiction",
        "no numbers",
    ],
)
def test_cached_tokens_are_no_input_tokens(metrics: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    (step,) = run(agent("hi", metrics=metrics)).steps
    row = (step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cache_write_tokens)
    assert (*row, step.reasoning_tokens) == expected


# -- who speaks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["", None, [], [{"type": "image"}], [{"type": "text", "text": " "}]])
def test_a_message_without_words_is_an_attachment(message: Any) -> None:
    assert [t.kind for t in run(user(message)).turns] == ["attachment"]


# -- calls and results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "n_calls"), [("Previous response had parsing errors:\nERROR: no plan", 0), ("$ ls\na.py", 1)]
)
def test_what_could_not_be_parsed_was_not_typed(answer: str, n_calls: int) -> None:
    message = json.dumps({"analysis": "a", "plan": "b", "commands": [{"keystrokes": "ls\n"}]})
    session = run(agent(message, observation=seen((None, answer)), metrics=used(10)))
    assert len(session.tool_calls) == n_calls
    assert [step.input_tokens for step in session.steps] == [10]
    assert session.events[-1].kind == ("tool_result" if n_calls else "harness")


@pytest.mark.parametrize(
    ("name", "text", "status", "code"),
    [
        ("run_shell_command", "Output: x\nError: (none)\nExit Code: 0\nSignal: 0", "ok", 0),
        ("run_shell_command", "Output: x\nExit Code: 2\n", "error", 2),
        ("execute_bash", "no\n[The command completed with exit code 127.]\n[Python interpreter: x]", "error", 127),
        ("Bash", "Exit code 1\n1 failed", "error", 1),
        ("Bash", "fine", "ok", None),
        ("str_replace_editor", "ERROR:\nno match", "error", None),
        ("Read", "Exit code 1 is what it prints", "ok", None),
    ],
)  # fmt: skip
def test_the_exit_code_stands_in_the_text(name: str, text: str, status: str, code: int | None) -> None:
    step = agent(tool_calls=[call("a", name, command="make", path="a")], observation=seen(("a", text)))
    (made,) = run(step).tool_calls
    assert (made.status, made.exit_code) == (status, code)


@pytest.mark.parametrize(
    ("name", "arguments", "op", "lines"),
    [
        ("str_replace_editor", {"command": "create", "path": "/app/a.py", "file_text": "1\n2\n"}, "create", (2, 0)),
        ("str_replace_editor", {"command": "str_replace", "path": "/app/a.py", "old_str": "a", "new_str": "b\nc"},
         "modify", (2, 1)),
        ("write_file", {"file_path": "/app/a.py", "content": "1\n"}, "create", (1, 0)),
        ("Edit", {"file_path": "/app/a.py", "old_string": "a", "new_string": "b"}, "modify", (1, 1)),
    ],
)  # fmt: skip
def test_edit_tools_say_in_their_arguments_what_they_changed(
    name: str, arguments: dict[str, Any], op: str, lines: tuple[int, int]
) -> None:
    session = run(agent(tool_calls=[call("a", name, **arguments)], observation=seen(("a", "done"))))
    assert [(e.path, e.op, (e.added, e.removed)) for e in session.edits] == [("/app/a.py", op, lines)]
    failed = run(agent(tool_calls=[call("a", name, **arguments)], observation=seen(("a", "ERROR: no"))))
    assert failed.edits == []


# -- actions inside the message -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("<function=a", []),
        ("<function=a>", ["a"]),
        ("<function=a><parameter=p>1", ["a"]),
        ("x <function=a></function> y <function=b", ["a"]),
        ('{"commands": [{"keystrokes": "ls\\n"}, {"keys": 1}, 7]} thanks', ["keystrokes"]),
        ('so: {"commands": []}', []),
        ('{"commands": "ls"}', []),
        ('the "commands" are {broken', []),
    ],
)
def test_half_an_action_is_text_or_as_much_of_a_call_as_there_is(message: str, names: list[str]) -> None:
    session = run(agent(message))
    assert [c.name for c in session.tool_calls] == names


def test_hostile_messages_take_linear_time() -> None:
    for message in ("<function=" * 60_000, "<parameter=" * 60_000, "<function=a>" + "<parameter=p>" * 60_000):
        run(agent(message))


# -- what surrounds it ----------------------------------------------------------------------------------------------


def test_what_a_compaction_hands_on_is_no_prompt() -> None:
    step = {"source": "system", "message": "cut", "extra": {"context_management": {"type": "compaction"}}}
    steps = (user("mend it"), step, user("You go on with: …"), agent("on it"), user("and test it"))
    session = run(*steps, agent={"name": "terminus-2", "version": "2.0.0"})
    assert [turn.text for turn in session.turns] == ["mend it", "and test it"]
    assert len(run(*steps).turns) == 3, "of others nobody knows that they do"


ODD: list[Any] = [None, 7, -1.5, True, "x", [], {}, [None], {"a": 1}, 10**30, [[{}]]]


@pytest.mark.parametrize(
    "name",
    [
        "source", "timestamp", "message", "model_name", "reasoning_content", "tool_calls", "observation", "metrics",
        "is_copied_context", "extra", "llm_call_count", "reasoning_effort",
    ],
)  # fmt: skip
def test_odd_values_of_a_step_never_raise(name: str) -> None:
    for odd in ODD:
        step = {**agent("a", tool_calls=[call("c")], observation=seen(("c", "x"))), name: odd}
        assert reading({"/r/t.json": document(step)}).sessions


@pytest.mark.parametrize("name", ["agent", "final_metrics", "subagent_trajectories", "continued_trajectory_ref"])
def test_odd_values_of_a_trajectory_never_raise(name: str) -> None:
    for odd in ODD:
        reading({"/r/t.json": document(agent("a"), **{name: odd})})


CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "eval"
NO_CORPUS = "the corpus of real traces is not here"

# -- several files --------------------------------------------------------------------------------------------------


def test_files_put_together_under_new_names_still_find_each_other() -> None:
    folder = Path(__file__).parent / "atif/files/a_continuation_goes_on_and_what_it_copies_is_counted_once"
    found = reading({f"/all/{n}_{path.name}": path.read_bytes() for n in (1, 2) for path in folder.iterdir()})
    assert [len(s.steps) for s in found.sessions] == [2, 2]
    assert [s.session_id for s in found.sessions] == ["", ""], "they share an id, which then names neither"


SUB = {"trajectory_id": "t-sub", "schema_version": "ATIF-v1.7", "agent": {"name": "helper", "model_name": "small"}}


@pytest.mark.parametrize(
    "ref",
    [{"trajectory_path": "logs/sub.json"}, {"session_id": "s-sub"}],
    ids=["by its path", "by its session, as until 1.6"],
)
def test_a_subagent_in_a_file_of_its_own_is_no_run_of_its_own(ref: dict[str, str]) -> None:
    found = {"results": [{"content": None, "subagent_trajectory_ref": ref}]}
    files = {
        "/r/sub.json": document(agent("sub"), session_id="s-sub"),
        "/r/t.json": document(agent("main", observation=found)),
    }
    (session,) = reading(files).sessions
    assert [(e.thread, e.text, e.artifact_id) for e in session.events] == [
        (MAIN, "main", "/r/t.json"),
        ("sub", "sub", "/r/sub.json"),
    ]


def test_subagents_nested_without_end_are_all_read() -> None:
    inner: dict[str, Any] = {**SUB, "trajectory_id": "t-0", "steps": [agent("0")]}
    for n in range(1, 200):
        ref = {"results": [{"content": "", "subagent_trajectory_ref": [{"trajectory_id": f"t-{n - 1}"}]}]}
        steps = [agent(str(n), observation=ref)]
        inner = {**SUB, "trajectory_id": f"t-{n}", "steps": steps, "subagent_trajectories": [inner]}
    session = run(agent("top"), subagent_trajectories=[inner])
    assert len({e.thread for e in session.events}) == 201


# -- real files -----------------------------------------------------------------------------------------------------


def real(pattern: str) -> tuple[dict[str, Any], Session, Attempt]:
    """Files as they are, read here by `json` alone for the second opinion, and what the format makes of them."""
    paths = sorted(CORPUS.glob(pattern))
    if not paths:
        pytest.skip(NO_CORPUS)
    found = reading({str(p): p.read_bytes() for p in paths})
    ((session,), (part,)) = found.sessions, found.attempts
    return json.loads(paths[-1].read_bytes()), session, part


@pytest.mark.parametrize(
    ("pattern", "steps", "calls", "edits"),
    [
        ("atif/openhands_hello-world.trajectory.json", 2, 2, 1),
        ("atif/openhands_hello-world.trajectory.no_function_calling.json", 2, 2, 1),
        ("harbor/*/*/*/agent/trajectory.json", 6, 7, 2),
    ],
)
def test_the_sum_of_a_real_run_is_its_own_total(pattern: str, steps: int, calls: int, edits: int) -> None:
    raw, session, _ = real(pattern)
    totals = raw["final_metrics"]
    cached = totals.get("total_cached_tokens", 0)
    assert sum(s.input_tokens or 0 for s in session.steps) == totals["total_prompt_tokens"] - cached
    assert sum(s.output_tokens or 0 for s in session.steps) == totals["total_completion_tokens"]
    assert sum(s.cache_read_tokens or 0 for s in session.steps) == cached
    if "total_cost_usd" in totals:
        assert sum(s.cost_usd or 0 for s in session.steps) == pytest.approx(totals["total_cost_usd"])
    assert (len(session.steps), len(session.tool_calls), len(session.edits)) == (steps, calls, edits)
    assert len(session.turns) == 1


def test_a_real_run_in_two_files_lacks_its_subagents_alone() -> None:
    """Its last totals count three summarising subagents too, whose files are not there: 1 300 tokens in, 340 out."""
    _, session, part = real("atif/terminus_2*.json")
    assert (part.input_tokens, part.output_tokens) == (7802, 1030)
    assert sum(s.input_tokens or 0 for s in session.steps) == 2252 + 4250
    assert sum(s.output_tokens or 0 for s in session.steps) == 160 + 530
    assert [c.command for c in session.tool_calls if c.class_ == "read"] == ["cat hello.txt\n"]
    assert [e.path for e in session.edits] == ["test_dir/file1.txt", "test_dir/file2.txt", "hello.txt"]
    assert [e.kind for e in session.events].count("compaction") == 1
