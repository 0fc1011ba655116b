"""Sessions that are long in one way each: what a step could pile up over, alone, so that nothing else hides its growth.

Claude Code's records; `make` writes one of so many steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentsignals.model import to_iso

CWD = "/home/dev/orchard"
_START_US = 1_772_442_000_000_000
_STEP_US = 7_000_000
_WORDS = ["round", "tax", "basket", "price", "total", "cache", "retry", "parse", "query", "index", "login", "token"]


class _Lines:
    """The records of one session, one after the other."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, type_: str, **more: Any) -> None:
        n = len(self.rows)
        base = {"sessionId": "5e55", "cwd": CWD, "version": "2.1.20", "uuid": f"u{n}"}
        base |= {"parentUuid": f"u{n - 1}" if n else None, "timestamp": to_iso(_START_US + n * _STEP_US)}
        self.rows.append({**base, "type": type_, **more})

    def prompt(self, text: str, **more: Any) -> None:
        self.add("user", message={"role": "user", "content": text}, **more)

    def say(self, *blocks: dict[str, Any], **more: Any) -> None:
        used = {"input_tokens": 12, "output_tokens": 90, "cache_read_input_tokens": 14_000}
        message = {"id": f"m{len(self.rows)}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": used}
        self.add("assistant", message={**message, "content": list(blocks)}, **more)

    def call(self, name: str, arguments: Any, result: str = "done", *, failed: bool = False, **more: Any) -> None:
        call_id = f"c{len(self.rows)}"
        beside = {"toolUseResult": more.pop("beside")} if "beside" in more else {}
        self.say(_use(call_id, name, arguments), **more)
        self.add("user", message={"role": "user", "content": [_result(call_id, result, failed)]}, **beside, **more)


Shape = Callable[[_Lines, int], None]


def _use(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _result(call_id: str, text: str, failed: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _patch(path: str, *hunks: tuple[int, list[str]]) -> dict[str, Any]:
    patches = [{"oldStart": at, "newStart": at, "oldLines": 1, "newLines": 2, "lines": lines} for at, lines in hunks]
    return {"filePath": path, "structuredPatch": patches}


def _replaced_everywhere(lines: _Lines, hunks: list[tuple[int, list[str]]]) -> None:
    lines.prompt("change src/a.py")
    arguments = {"file_path": f"{CWD}/src/a.py", "old_string": "value", "new_string": "other", "replace_all": True}
    lines.call("Edit", arguments, beside=_patch(f"{CWD}/src/a.py", *hunks))


def _turns(lines: _Lines, n: int) -> None:
    for i in range(n):
        lines.prompt(f"and now number {i}, {_WORDS[i % 12]} {_WORDS[i % 7]}")
        lines.say(_text(f"I looked at {i}: {_WORDS[i % 11]}. It is done."))


def _same_prompt(lines: _Lines, n: int) -> None:
    for i in range(n):
        lines.prompt("no, that's wrong: still failing, same error")
        lines.say(_text(f"I should check {i} again. Sorry, all tests pass now."))


def _interrupts(lines: _Lines, n: int) -> None:
    for i in range(n):
        lines.prompt(f"change the {_WORDS[i % 12]} in src/part_{i}.py")
        lines.say(_use(f"i{i}", "Bash", {"command": f"make part_{i}"}))
        lines.prompt("[Request interrupted by user]")


def _edits_of_one_call(lines: _Lines, n: int) -> None:
    lines.prompt("change src/a.py")
    edits = [{"old_string": f"value {i}", "new_string": f"value {i}\nmore"} for i in range(n)]
    lines.call("MultiEdit", {"file_path": f"{CWD}/src/a.py", "edits": edits})


def _hunks_of_one_edit(lines: _Lines, n: int) -> None:
    _replaced_everywhere(lines, [(1 + 10 * i, [f" value {i}", f"+more {i}"]) for i in range(n)])


def _one_large_edit(lines: _Lines, n: int) -> None:
    lines.prompt("change src/a.py")
    old = "\n".join(f"value_{i} = {i % 17}" for i in range(n))
    new = "\n".join(f"value_{i} = {i % 19}" for i in range(n))
    lines.call("Edit", {"file_path": f"{CWD}/src/a.py", "old_string": old, "new_string": new})


def _calls_at_once(lines: _Lines, n: int) -> None:
    lines.prompt("read them all")
    lines.say(*[_use(f"p{i}", "Read", {"file_path": f"{CWD}/src/part_{i}.py"}) for i in range(n)])
    lines.add("user", message={"role": "user", "content": [_result(f"p{i}", f"{i}\tx") for i in range(n)]})


def _calls_without_results(lines: _Lines, n: int) -> None:
    lines.prompt("read them all")
    for i in range(n):
        lines.say(_use(f"p{i}", "Read", {"file_path": f"{CWD}/src/part_{i}.py"}))


def _compactions(lines: _Lines, n: int) -> None:
    lines.prompt("go on")
    for i in range(n):
        lines.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 150_000 + i})
        lines.prompt(f"This session is being continued from a previous one: src/part_{i}.py", isCompactSummary=True)
        lines.call("Read", {"file_path": f"{CWD}/src/part_{i}.py"}, "1\tx")


def _subagents(lines: _Lines, n: int) -> None:
    lines.prompt("ask the others")
    for i in range(n):
        arguments = {"prompt": f"look at {i}", "description": f"look {i}", "subagent_type": "scout"}
        lines.call("Task", arguments, f"found {i}", beside={"agentId": f"agent{i}", "totalTokens": 90})
        lines.call("Read", {"file_path": f"{CWD}/sub_{i}.py"}, "1\tx", isSidechain=True, agentId=f"agent{i}")


def _plans(lines: _Lines, n: int) -> None:
    lines.prompt("make a plan")
    for i in range(n):
        todos = [{"content": f"item {j}", "status": "completed" if j < i % 7 else "pending"} for j in range(7)]
        lines.call("TodoWrite", {"todos": todos})
        if i % 5 == 0:
            lines.call("ExitPlanMode", {"plan": f"1. change src/part_{i}.py\n2. test it"})


def _one_large_plan(lines: _Lines, n: int) -> None:
    lines.prompt("make a plan")
    todos = [{"content": f"change src/part_{i}.py, number {i}", "status": "pending"} for i in range(n)]
    lines.call("TodoWrite", {"todos": todos})
    lines.call("ExitPlanMode", {"plan": "\n".join(f"{i}. change src/part_{i}.py" for i in range(n))})


def _queued(lines: _Lines, n: int) -> None:
    lines.prompt("begin")
    for i in range(n):
        lines.add("queue-operation", operation="enqueue", content=f"and then number {i}")
        lines.add("queue-operation", operation="dequeue")
        lines.prompt(f"and then number {i}")


def _one_long_prompt(lines: _Lines, n: int) -> None:
    lines.prompt("\n".join(f"fix the {_WORDS[i % 12]} number {i} in src/part_{i}.py, please" for i in range(n)))
    lines.say(_text("done"))


def _one_long_answer(lines: _Lines, n: int) -> None:
    output = "\n".join(f"Wait, I changed the {_WORDS[i % 12]} in `src/part_{i}.py`. All tests pass." for i in range(n))
    lines.prompt("what did you do?")
    lines.say({"type": "thinking", "thinking": output}, _text(output))
    lines.prompt("really?")


def _one_long_result(lines: _Lines, n: int) -> None:
    lines.prompt("run the tests")
    output = "\n".join(f"FAILED tests/test_{i}.py::test_{_WORDS[i % 12]} - KeyError: {i}" for i in range(n))
    lines.call("Bash", {"command": "python -m pytest"}, f"Exit code 1\n{output}\n{n} failed", failed=True)
    lines.call("Read", {"file_path": f"{CWD}/a.py"}, "\n".join(f"{i}\tvalue_{i} = {i}" for i in range(n)))


def _one_long_command(lines: _Lines, n: int) -> None:
    lines.prompt("run it")
    lines.call("Bash", {"command": " && ".join(f"sed -i s/a/b/ src/part_{i}.py" for i in range(n))})
    lines.call("Bash", {"command": "cat > a.py <<'EOF'\n" + "\n".join(f"value_{i} = {i}" for i in range(n)) + "\nEOF"})
    lines.call("Bash", {"command": "echo " + " ".join(f"'a {i}' $(ls {i}) \"b $x\"" for i in range(n)) + " | wc"})


def _one_word(lines: _Lines, n: int) -> None:
    for text in (
        "x" * n * 20,
        "Ab3+" * n * 5,
        "a." * n * 10,
        "/a" * n * 10,
        "((" * n * 10,
        "a-" * n * 10,
        " \t" * n * 10,
    ):
        lines.prompt(f"see {text}")
        lines.say(_text(text))
        lines.call("Bash", {"command": f"echo {text}"}, text, failed=True)


def _branches(lines: _Lines, n: int) -> None:
    """A history that went back again and again to its first prompt."""
    lines.prompt("begin")
    for i in range(n):
        lines.prompt(f"try number {i}", parentUuid="u0")
        lines.say(_text("tried"))


def _hunks_of_one_place(lines: _Lines, n: int) -> None:
    _replaced_everywhere(lines, [(1, [" value", f"+more {i}"]) for i in range(n)])


def _interrupts_alone(lines: _Lines, n: int) -> None:
    lines.prompt("begin")
    for _ in range(n):
        lines.prompt("[Request interrupted by user]")


def _summaries(lines: _Lines, n: int) -> None:
    lines.prompt("begin")
    for i in range(n):
        lines.prompt(f"This session is being continued from a previous conversation, number {i}")


def _results_before_calls(lines: _Lines, n: int) -> None:
    lines.prompt("read them all")
    lines.add("user", message={"role": "user", "content": [_result(f"p{i}", f"{i}\tx") for i in range(n)]})
    lines.say(*[_use(f"p{i}", "Read", {"file_path": f"{CWD}/src/part_{i}.py"}) for i in range(n)])


def _queue_full(lines: _Lines, n: int) -> None:
    lines.prompt("begin")
    for i in range(n):
        lines.add("queue-operation", operation="enqueue", content=f"and then number {i}")
    for i in reversed(range(n)):
        lines.add("queue-operation", operation="remove", content=f"and then number {i}")


def _tags_left_open(lines: _Lines, n: int) -> None:
    for tag in ("<system-reminder>", "<command-args>", "<command-name> "):
        lines.prompt(f"<command-name>{tag * n}")
        lines.prompt(f"look {tag * n}")


A = f"{CWD}/src/a.py"
_REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected"
_NOT_FOUND = "String to replace not found in file."
Arguments = Callable[[int, int], dict[str, Any]]


def _edits(arguments: Arguments, hunk: Callable[[int, int], tuple[int, list[str]]]) -> Shape:
    """One file is edited in every step, each time with a patch of one hunk."""

    def shape(lines: _Lines, n: int) -> None:
        lines.prompt("change src/a.py")
        for i in range(n):
            lines.call("Edit", {"file_path": A, **arguments(i, n)}, beside=_patch(A, hunk(i, n)))

    return shape


def _calls(
    prompt: str, name: str, arguments: Callable[[int], dict[str, Any]], result: Any = "done", failed: bool = False
) -> Shape:
    """One tool is called in every step; `result` is its text, or makes it of the step's number."""

    def shape(lines: _Lines, n: int) -> None:
        lines.prompt(prompt)
        for i in range(n):
            lines.call(name, arguments(i), result(i) if callable(result) else result, failed=failed)

    return shape


def _grows(i: int, _: int) -> dict[str, Any]:
    return {"old_string": f"value {i}", "new_string": f"value {i}\nmore {i}"}


_TESTS = "make the tests pass"
SHAPES: dict[str, Shape] = {
    **{f.__name__[1:]: f for f in list(globals().values()) if getattr(f, "__annotations__", {}).get("n") == "int"
       and list(f.__annotations__) == ["lines", "n", "return"]},
    "rejected": _calls("please do", "Edit", lambda i: {"file_path": f"{CWD}/a.py", "old_string": f"a{i}",
                       "new_string": "b"}, _REJECTED, failed=True),
    "one_file_read": _calls("look at it", "Read", lambda i: {"file_path": A, "offset": i, "limit": 5},
                            lambda i: f"{i}\tvalue_{i} = 1\n"),
    "one_file_edited": _edits(_grows, lambda i, n: (1 + 10 * (i * 7_919 % n), [f" value {i}", f"+more {i}"])),
    "one_line_edited": _edits(_grows, lambda i, _: (3, [f" value {i}", f"+more {i}"])),
    "one_line_replaced": _edits(lambda i, _: {"old_string": f"value {i}", "new_string": f"value {i + 1}"},
                                lambda i, _: (3, [f"-value {i}", f"+value {i + 1}"])),
    "edits_without_patches": _calls("change src/a.py", "Edit", lambda i: {"file_path": A, "old_string": f"v{i}",
                                    "new_string": f"v{i}\nw{i}"}),
    "edits_failing": _calls("change src/a.py", "Edit", lambda _: {"file_path": A, "old_string": "value",
                            "new_string": "other"}, _NOT_FOUND, failed=True),
    "one_file_written": _calls("write src/a.py", "Write", lambda i: {"file_path": A, "content": f"value = {i}\n"}),
    "files_written": _calls("write them", "Write", lambda i: {"file_path": f"{CWD}/src/part_{i}.py",
                            "content": f"value = {i}\n"}),
    "same_failure": _calls(_TESTS, "Bash", lambda _: {"command": "python -m pytest tests/test_a.py -q"},
                           "Exit code 1\n2 failed", failed=True),
    "other_failures": _calls(_TESTS, "Bash", lambda i: {"command": f"python -m pytest tests/test_{i}.py -q"},
        lambda i: f"Exit code 1\nFAILED tests/test_{i}.py::test_{_WORDS[i % 12]}_{i}\nE   KeyError: 'name_{i}'",
        failed=True),
    "searches": _calls("find it", "Grep", lambda i: {"pattern": f"word_{i}", "path": "src"},
                       lambda i: f"src/part_{i}.py:12: word_{i}"),
    "commits": _calls("commit each", "Bash", lambda i: {"command": f"git add -A && git commit -m 'number {i}'"},
                      lambda i: f"[main {i:07x}] number {i}\n 1 file changed, 1 insertion(+)"),
    "folders": _calls("go", "Bash", lambda i: {"command": f"cd part_{i % 9} && python -m pytest && cd .."}, "1 passed"),
}  # fmt: skip


def make(shape: str, steps: int, folder: Path) -> Path:
    """The file of a session of that shape with so many steps."""
    lines = _Lines()
    SHAPES[shape](lines, steps)
    path = folder / f"{shape}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in lines.rows))
    return path
