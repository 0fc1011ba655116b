"""Made-up sessions as long as one likes, in the formats of several agents, with whatever a step could pile up over.

Edits with and without a patch, errors, retries, repeated prompts, plans, task lists, compactions, subagents, prompts
queued, files that are new all the time and files that are edited again and again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentsignals.model import to_iso
from tests.demo_stories import START_US, Beat, Story, clock, write

CWD = "/home/dev/orchard"
SESSION = "3b5f8a10-7c11-4d5a-9a61-{:012d}"
_SAYS = (
    "no, that's not right: the rounding happens before the tax",
    "still failing, same error",
    "great, commit this",
    "fix the login bug in src/part_{n}/module.py, please",
    "why did you change number {n}?",
    "continue",
)
_WORDS = ["round", "tax", "basket", "price", "total", "cache", "retry", "parse", "query", "index", "login", "token"]


def beats(turns: int, chance: random.Random) -> list[Beat]:
    """What happens in a session of so many prompts: some five calls each."""
    made: list[Beat] = []

    def add(kind: Any, wait_s: int, **more: Any) -> None:
        made.append(Beat(kind=kind, wait_s=wait_s, **more))

    for n in range(turns):
        words = " ".join(chance.choices(_WORDS, k=8))
        add("prompt", chance.choice((20, 400, 4_000)), text=chance.choice(_SAYS).format(n=n))
        add("think", 3, text=f"First I look at number {n}: {words}. Wait, I should check the tests again.")
        path = f"src/part_{chance.randrange(max(turns // 4, 1))}/module.py" if n % 3 else "src/often.py"
        add("read", 2, path=path, result="\n".join(f"{i}\tvalue_{i} = {words}" for i in range(5)))
        add("search", 2, text=f"word_{n % 50}", result=f"{path}:12: discount = 0")
        line = chance.randrange(5, 5 + turns)
        old = f"    value_{n} = compute({line})\n"
        new = old + f"    value_{n} = round_once(value_{n}, {words})\n"
        failed = n % 11 == 0
        told = "String to replace not found in file." if failed else "The file has been updated."
        add("edit", 5, path=path, old=old, new=new, start_line=line, result=told, failed=failed)
        tests, looks = f"python -m pytest tests/test_{n % 40}.py -q", f"ls -la src/part_{n} && sed -i s/a/b/ x_{n}"
        for again in range(1 + n % 2):
            wrong = n % 3 == 0 and not again
            add("shell", 6, command=tests if n % 2 else looks, result=f"{n % 9} failed: {words}", failed=wrong)
        if n % 17 == 3:
            add("reject", 5, text="keep the old name", path=path, old="a", new="b")
        elif n % 19 == 4:
            add("interrupt", 4)
        else:
            add("say", 3, text=f"I changed {path}: {words}. All tests pass now, sorry for number {n}.")
    return made


def story(turns: int, format_name: str, number: int = 1) -> Story:
    """A session of so many prompts."""
    chance = random.Random(turns * 31 + number)  # noqa: S311  (made-up data, the same every time)
    model = {"codex": "gpt-5.1-codex", "gemini-cli": "gemini-2.5-pro"}.get(format_name, "claude-sonnet-4-5")
    return Story(
        number=number,
        session_id=SESSION.format(number),
        format=format_name,
        model=model,
        repo="orchard",
        cwd=CWD,
        branch="main",
        start_us=START_US,
        beats=beats(turns, chance),
    )


def _demo(turns: int, folder: Path, name: str, number: int) -> Path:
    return write(story(turns, name, number), folder)


def _claude(turns: int, folder: Path, number: int) -> Path:
    """Claude Code's, and records of its own between."""
    path = _demo(turns, folder, "claude-code", number)
    made: list[str] = []
    with path.open() as lines:
        for n, line in enumerate(lines):
            record = json.loads(line)
            record["uuid"] = f"{number:04d}-{n}"
            if n % 5 == 0 and "structuredPatch" in str(record.get("toolUseResult")):
                record["toolUseResult"] = "done"
            made.append(json.dumps(record))
            made += [json.dumps(more) for more in _between(record, n, turns)]
    path.write_text("\n".join(made) + "\n")
    return path


def _between(record: dict[str, Any], n: int, turns: int) -> list[dict[str, Any]]:
    base = {**{k: record[k] for k in ("sessionId", "timestamp", "cwd", "version")}, "uuid": f"{record['uuid']}+"}

    def called(name: str, given: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        block = {"type": "tool_use", "id": f"more_{n}", "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": f"more_{n}", "content": "done"}
        message = {"id": f"m_{n}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block]}
        answer = {"uuid": f"{base['uuid']}+", "type": "user", "message": {"role": "user", "content": [result]}}
        return [{**base, **more, "type": "assistant", "message": message}, {**base, **more, **answer}]

    if n % 200 == 7:
        return [{**base, "type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": n}}]
    if n % 60 == 8:
        todos = [{"content": f"item {i}", "status": "completed" if i < n % 7 else "pending"} for i in range(7)]
        return called("TodoWrite", {"todos": todos})
    if n % 90 == 9:
        plan = "\n".join(f"{i}. change src/part_{(n + i) % turns}/module.py" for i in range(6))
        return called("ExitPlanMode", {"plan": plan})
    if n % 40 == 10:
        return called("Read", {"file_path": f"{CWD}/sub_{n}.py"}, isSidechain=True, agentId=f"agent{n}")
    if n % 50 == 11:
        return [{**base, "type": "queue-operation", "operation": "enqueue", "content": f"and then number {n}"}]
    if n % 70 == 12:
        return called("Task", {"prompt": f"look at number {n}", "description": "look", "subagent_type": "scout"})
    return []


_COPILOT = {"read": "view", "edit": "edit", "reject": "edit", "search": "grep", "shell": "bash"}


def _copilot(turns: int, folder: Path, number: int) -> Path:
    told = story(turns, "copilot-cli", number)
    context = {"cwd": CWD, "branch": "main", "repository": "dev/orchard"}
    rows: list[dict[str, Any]] = []

    def add(type_: str, at: int, **data: Any) -> None:
        rows.append({"type": type_, "data": data, "id": f"e{len(rows)}", "timestamp": to_iso(at), "parentId": None})

    add("session.start", START_US, sessionId=told.session_id, copilotVersion="1.0.64", context=context)
    for n, (at, beat) in enumerate(clock(told)):
        if beat.kind == "prompt":
            add("user.message", at, content=beat.text, transformedContent=beat.text, attachments=[])
        elif beat.kind == "interrupt":
            add("abort", at, reason="user initiated")
        else:
            asked: list[dict[str, Any]] = []
            if beat.kind not in ("say", "think"):
                named = {"toolCallId": f"t{n}", "name": _COPILOT[beat.kind]}
                asked = [{**named, "arguments": _copilot_arguments(beat), "type": "function"}]
            said = {"content": beat.text if beat.kind == "say" else "", "outputTokens": 90, "apiCallId": f"api{n}"}
            add("assistant.message", at, messageId=f"m{n}", model="claude-sonnet-4-5", toolRequests=asked, **said)
            if asked:
                failed = beat.failed or beat.kind == "reject"
                result = {"error": {"message": beat.result}} if failed else {"result": {"content": beat.result}}
                add("tool.execution_complete", at + 800_000, toolCallId=f"t{n}", success=not failed, **result)
    path = folder / "copilot-cli" / f"{number}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def _copilot_arguments(beat: Beat) -> dict[str, Any]:
    if beat.kind in ("edit", "reject"):
        return {"path": f"{CWD}/{beat.path}", "old_str": beat.old, "new_str": beat.new}
    if beat.kind == "read":
        return {"path": f"{CWD}/{beat.path}"}
    return {"pattern": beat.text} if beat.kind == "search" else {"command": beat.command}


def _opencode(turns: int, folder: Path, number: int) -> Path:
    told = story(turns, "opencode", number)
    messages: list[dict[str, Any]] = []

    def add(at: int, role: str, parts: list[dict[str, Any]], **info: Any) -> None:
        n = len(messages)
        time = {"created": at // 1000, "completed": at // 1000 + 900}
        named = {"id": f"msg_{n:06d}", "sessionID": told.session_id, "role": role, "time": time, **info}
        same = {"sessionID": told.session_id, "messageID": f"msg_{n:06d}"}
        messages.append({"info": named, "parts": [{**p, "id": f"prt_{n}_{i}", **same} for i, p in enumerate(parts)]})

    used = {"input": 12, "output": 90, "reasoning": 0, "cache": {"read": 9000, "write": 0}}
    model = {"modelID": told.model, "providerID": "anthropic", "cost": 0.01, "tokens": used, "finish": "stop"}
    for n, (at, beat) in enumerate(clock(told)):
        if beat.kind == "prompt":
            add(at, "user", [{"type": "text", "text": beat.text}])
        elif beat.kind == "interrupt":
            add(at, "assistant", [], error={"name": "MessageAbortedError", "data": {"message": "aborted"}}, **model)
        elif beat.kind in ("say", "think"):
            add(at, "assistant", [{"type": "text" if beat.kind == "say" else "reasoning", "text": beat.text}], **model)
        else:
            tool = {"read": "read", "edit": "edit", "reject": "edit", "search": "grep", "shell": "bash"}[beat.kind]
            given = {
                k.replace("path", "filePath").replace("old_str", "oldString").replace("new_str", "newString"): v
                for k, v in _copilot_arguments(beat).items()
            }
            failed = beat.failed or beat.kind == "reject"
            state: dict[str, Any] = {"status": "error" if failed else "completed", "input": given}
            state |= {"error": beat.result} if failed else {"output": beat.result, "title": "", "metadata": {}}
            state["time"] = {"start": at // 1000, "end": at // 1000 + 800}
            add(at, "assistant", [{"type": "tool", "callID": f"call_{n}", "tool": tool, "state": state}], **model)
    info = {"id": told.session_id, "directory": CWD, "version": "1.2.21", "title": "long"}
    info["time"] = {"created": START_US // 1000, "updated": START_US // 1000}
    path = folder / "opencode" / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"info": info, "messages": messages}))
    return path


FORMATS: dict[str, Callable[[int, Path, int], Path]] = {
    "claude-code": _claude,
    "codex": lambda turns, folder, number: _demo(turns, folder, "codex", number),
    "pi": lambda turns, folder, number: _demo(turns, folder, "pi", number),
    "gemini-cli": lambda turns, folder, number: _demo(turns, folder, "gemini-cli", number),
    "copilot-cli": _copilot,
    "opencode": _opencode,
}
"""Writes a session of so many prompts under a folder, by the format's name."""


def make(format_name: str, turns: int, folder: Path, number: int = 1) -> Path:
    """The file of one session of so many prompts."""
    return FORMATS[format_name](turns, folder, number)
