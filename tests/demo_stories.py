"""Made-up sessions, the same every time: what a person asked and what an agent did, and that in four agents' formats.

`python -m tests.demo_stories` writes the demo's archive from them.
"""

from __future__ import annotations

import gzip
import json
import random
import tarfile
import uuid
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from agentsignals.cli.demo_corpus import SESSIONS
from agentsignals.model import to_iso

START_US = 1_772_442_000_000_000  # Monday 2026-03-02, 09:00 UTC

Kind = Literal["prompt", "think", "say", "read", "search", "edit", "shell", "reject", "interrupt", "tool"]


class Beat(Struct, kw_only=True):
    """One thing that happens, `wait_s` after the one before."""

    kind: Kind
    wait_s: float
    takes_s: float = 0.8
    text: str = ""
    path: str = ""
    command: str = ""
    tool: str = ""
    """Name of a tool of no other kind, which is asked for `text`."""
    old: str = ""
    new: str = ""
    start_line: int = 1
    result: str = ""
    failed: bool = False


class Story(Struct, kw_only=True):
    """One session, before it is written in an agent's format."""

    number: int
    session_id: str
    format: str
    model: str
    repo: str
    cwd: str
    branch: str
    start_us: int
    beats: list[Beat]
    project: str = "0" * 64
    """Gemini CLI's name of the folder."""
    used: list[dict[str, Any]] = []
    """Tokens of each model call, and its `cost` for an agent that logs one. By `usage` where it is empty."""
    stops: bool = False
    """Claude Code logs why each answer ended."""


_REPOS = {
    "orchard": ("src/orchard/pricing.py", "src/orchard/basket.py", "src/orchard/cli.py", "tests/test_pricing.py"),
    "lantern": ("app/routes/login.ts", "app/session.ts", "app/components/Header.tsx", "app/session.test.ts"),
    "gearbox": ("internal/queue/worker.go", "internal/queue/retry.go", "cmd/gearbox/main.go",
                "internal/queue/retry_test.go"),
}  # fmt: skip
_TESTS = {"orchard": "python -m pytest tests -q", "lantern": "npm test", "gearbox": "go test ./..."}
_AGENTS = (
    ("claude-code", "claude-opus-4-5-20251101"),
    ("claude-code", "claude-sonnet-4-5-20250929"),
    ("codex", "gpt-5.1-codex"),
    ("pi", "claude-sonnet-4-5"),
    ("gemini-cli", "gemini-2.5-pro"),
)
_OPENINGS = (
    "The total in {path} is off by one cent when a discount applies. Find out why and fix it, with a test.",
    "Can you add a retry with backoff to {path}? It should give up after five tries.",
    "{path} crashes with a KeyError on an empty list, please look into it",
    "Refactor {path} so that the parsing and the writing are two functions.",
    "fix the login bug",
    "Please review {path} and tell me what you would simplify.",
)
_FOLLOW_UPS = (
    "no, that's not right: the rounding happens before the tax",
    "still failing, same error",
    "great, commit this",
    "you forgot the second call site",
    "now update the docs too",
    "why did you change the signature?",
    "run the tests again",
    "yes",
    "thanks, looks good",
)


def stories() -> Iterator[Story]:
    """All sessions of the demo."""
    chance = random.Random(20260302)  # noqa: S311  (made-up data, the same every time)
    for number in range(SESSIONS):
        yield _story(number, chance)


def _story(number: int, chance: random.Random) -> Story:
    repo = chance.choice(sorted(_REPOS))
    format_name, model = _AGENTS[number % len(_AGENTS)]
    beats: list[Beat] = []
    for turn in range(chance.choice((1, 1, 2, 3, 3, 4, 6, 9))):
        path, wait_s = chance.choice(_REPOS[repo]), chance.uniform(20, 400)
        text = chance.choice(_OPENINGS).format(path=path) if turn == 0 else chance.choice(_FOLLOW_UPS)
        beats += [Beat(kind="prompt", wait_s=wait_s, text=text), *_response(repo, path, turn, chance)]
    start_us = START_US + number * 86_400_000_000 * 5 // 6 + chance.randrange(6 * 3600) * 1_000_000
    session_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    branch = "main" if chance.random() < 0.6 else f"work/{number}"
    return Story(number=number, session_id=session_id, format=format_name, model=model, repo=repo,
                 cwd=f"/home/dev/{repo}", branch=branch, start_us=start_us, beats=beats)  # fmt: skip


def _response(repo: str, path: str, turn: int, chance: random.Random) -> Iterator[Beat]:
    yield Beat(kind="think", wait_s=3, text=f"The request is about {path}. I should read it before I change anything.")
    for other in chance.sample(_REPOS[repo], chance.randint(1, 3)):
        lines = "\n".join(f"{n}\tline {n} of {other}" for n in range(1, 40))
        yield Beat(kind="read", wait_s=2, path=other, result=lines)
    if chance.random() < 0.5:
        yield Beat(kind="search", wait_s=2, text="discount", path="", result=f"{path}:12: discount = 0")
    if chance.random() < 0.12:
        yield Beat(kind="interrupt", wait_s=4)
        return
    for n in range(chance.randint(0, 3)):
        edit = _edit(path, turn, n, chance)
        if chance.random() < 0.08:
            said = "keep the old name, only change the body"
            yield Beat(kind="reject", wait_s=5, text=said, path=path, old="a", new="b")
            return
        yield edit
        failed = chance.random() < 0.35
        output = "2 failed, 31 passed" if failed else "33 passed in 1.20s"
        yield Beat(kind="shell", wait_s=6, command=_TESTS[repo], result=output, failed=failed)
    if chance.random() < 0.3:
        committed = "[main 1a2b3c4] Fix it\n 1 file changed"
        yield Beat(kind="shell", wait_s=2, command='git commit -am "Fix it"', result=committed)
    said = f"I changed {path} and ran the tests. The total is now rounded once, after the tax."
    yield Beat(kind="say", wait_s=3, text=said)


def _edit(path: str, turn: int, n: int, chance: random.Random) -> Beat:
    line = chance.randint(5, 30)
    old = f"    value_{turn} = compute({line})\n"
    new = old + f"    value_{turn} = round_once(value_{turn}, {n})\n"
    failed = chance.random() < 0.06
    result = "String to replace not found in file." if failed else "The file has been updated."
    return Beat(kind="edit", wait_s=5, path=path, old=old, new=new, start_line=line, result=result, failed=failed)


def ends_us(beat: Beat) -> int:
    """Microseconds from a call to its result."""
    return int(beat.takes_s * 1_000_000)


def clock(story: Story) -> Iterator[tuple[int, Beat]]:
    """Each beat with its time in microseconds."""
    at = story.start_us
    for beat in story.beats:
        at += int(beat.wait_s * 1_000_000)
        yield at, beat


def used(story: Story, number: int) -> dict[str, Any]:
    """The tokens of a session's n-th model call."""
    return story.used[max(number, 1) - 1] if story.used else usage(number)


def usage(number: int) -> dict[str, Any]:
    """Token counts of the n-th model call of a session: a context that grows, nearly all of it cached."""
    return {"input": 12, "output": 90 + number % 7 * 35, "cache_read": 14_000 + number * 900, "cache_write": 850}


# The demo's sessions as the agents would have written them.


def _path(story: Story) -> str:
    suffix = "json" if story.format == "gemini-cli" else "jsonl"
    return f"{story.format}/{story.number:02d}-{story.session_id[:8]}.{suffix}"


def write(story: Story, folder: Path) -> Path:
    """Write one session file under the folder, in the story's own format."""
    path = folder / _path(story)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_WRITERS[story.format](story), encoding="utf-8")
    return path


def _lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(r) + "\n" for r in records)


def _body(beat: Beat) -> list[str]:
    """The lines of an edit as a diff has them."""
    before, after = beat.old.splitlines(), beat.new.splitlines()
    same = next((n for n, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before))
    return [
        f"{sign}{x}" for sign, part in ((" ", before[:same]), ("-", before[same:]), ("+", after[same:])) for x in part
    ]


def _claude(story: Story) -> str:
    records: list[dict[str, Any]] = []
    calls = 0
    tools = {"read": "Read", "edit": "Edit", "reject": "Edit", "search": "Grep", "shell": "Bash"}

    def add(kind: str, at: int, message: dict[str, Any], **more: Any) -> None:
        parent = records[-1]["uuid"] if records else None
        about = {"type": kind, "uuid": f"{story.session_id[:-4]}{len(records):04d}", "parentUuid": parent}
        place = {"cwd": story.cwd, "gitBranch": story.branch, "version": "2.1.20"}
        when = {"sessionId": story.session_id, "timestamp": to_iso(at)}
        records.append({**about, **when, **place, "message": message, **more})

    def assistant(at: int, block: dict[str, Any]) -> None:
        tokens = used(story, calls)
        counts = {"input_tokens": tokens["input"], "output_tokens": tokens["output"],
                  "cache_read_input_tokens": tokens["cache_read"],
                  "cache_creation_input_tokens": tokens["cache_write"]}  # fmt: skip
        facts = {"id": f"msg_{story.number:02d}_{calls:03d}", "model": story.model, "role": "assistant"}
        facts |= {"stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn"} if story.stops else {}
        add("assistant", at, {**facts, "content": [block], "usage": counts})

    for at, beat in clock(story):
        if beat.kind == "prompt":
            add("user", at, {"role": "user", "content": beat.text})
        elif beat.kind == "interrupt":
            add("user", at, {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]})
        elif beat.kind == "think":
            assistant(at, {"type": "thinking", "thinking": beat.text, "signature": "none"})
        elif beat.kind == "say":
            calls += 1
            assistant(at, {"type": "text", "text": beat.text})
        else:
            calls += 1
            call_id = f"toolu_{story.number:02d}_{calls:03d}"
            use = {"type": "tool_use", "id": call_id, "name": tools.get(beat.kind, beat.tool)}
            assistant(at, {**use, "input": _claude_input(story, beat)})
            text, structured = _claude_result(story, beat)
            failed = beat.failed or beat.kind == "reject"
            block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
            add("user", at + ends_us(beat), {"role": "user", "content": [block]}, toolUseResult=structured)
    return _lines(records)


def _claude_input(story: Story, beat: Beat) -> dict[str, Any]:
    if beat.kind in ("edit", "reject"):
        return {"file_path": f"{story.cwd}/{beat.path}", "old_string": beat.old, "new_string": beat.new}
    if beat.kind == "read":
        return {"file_path": f"{story.cwd}/{beat.path}"}
    if beat.kind == "tool":
        return {"query": beat.text}
    return {"pattern": beat.text} if beat.kind == "search" else {"command": beat.command, "description": "run it"}


def _claude_result(story: Story, beat: Beat) -> tuple[str, Any]:
    if beat.kind == "reject":
        refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
        return f"{refusal} To tell you how to proceed, the user said:\n{beat.text}", "Error: rejected"
    if beat.kind == "edit" and not beat.failed:
        before, after = len(beat.old.splitlines()), len(beat.new.splitlines())
        patch = {"oldStart": beat.start_line, "oldLines": before, "newStart": beat.start_line, "newLines": after,
                 "lines": _body(beat)}  # fmt: skip
        return beat.result, {"filePath": f"{story.cwd}/{beat.path}", "structuredPatch": [patch], "userModified": False}
    if beat.failed and beat.kind == "shell":
        return f"Exit code 1\n{beat.result}", f"Error: Exit code 1\n{beat.result}"
    return beat.result, {"stdout": beat.result, "stderr": "", "interrupted": False}


def _codex(story: Story) -> str:
    records: list[dict[str, Any]] = []
    counts = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
    total = dict.fromkeys(counts, 0)
    calls = 0

    def add(at: int, kind: str, payload: dict[str, Any]) -> None:
        records.append({"timestamp": to_iso(at), "type": kind, "payload": payload})

    def counted(at: int) -> None:
        tokens = used(story, calls)
        read = tokens["input"] + tokens["cache_read"] + (tokens["cache_write"] if story.used else 0)
        last = dict(
            zip(counts, (read, tokens["cache_read"], tokens["output"], 0, read + tokens["output"]), strict=True)
        )
        for name, n in last.items():
            total[name] += n
        info = {"total_token_usage": dict(total), "last_token_usage": last}
        add(at, "event_msg", {"type": "token_count", "info": info})

    url = f"https://example.org/dev/{story.repo}.git"
    git = {"branch": story.branch, "commit_hash": "0" * 40, "repository_url": url}
    meta = {"id": story.session_id, "cwd": story.cwd, "originator": "codex_cli", "cli_version": "0.125.0", "git": git}
    add(story.start_us, "session_meta", meta)
    for at, beat in clock(story):
        if beat.kind == "prompt":
            add(at, "turn_context", {"model": story.model, "cwd": story.cwd, "approval_policy": "on-request"})
            add(at, "event_msg", {"type": "user_message", "message": beat.text})
        elif beat.kind in ("interrupt", "reject"):
            add(at, "event_msg", {"type": "turn_aborted", "reason": "interrupted"})
        elif beat.kind == "think":
            add(at, "response_item", {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "x"})
        elif beat.kind == "say":
            calls += 1
            content = [{"type": "output_text", "text": beat.text}]
            add(at, "event_msg", {"type": "agent_message", "message": beat.text})
            add(at, "response_item", {"type": "message", "role": "assistant", "content": content})
            counted(at)
        else:
            calls += 1
            _codex_call(add, at, story, beat, f"call_{story.number:02d}_{calls:03d}")
            counted(at + ends_us(beat) + 100_000)
    return _lines(records)


def _codex_call(
    add: Callable[[int, str, dict[str, Any]], None], at: int, story: Story, beat: Beat, call_id: str
) -> None:
    if beat.kind == "edit":
        body = "\n".join(_body(beat))
        patch = f"*** Begin Patch\n*** Update File: {beat.path}\n@@\n{body}\n*** End Patch"
        call = {"type": "custom_tool_call", "name": "apply_patch", "call_id": call_id, "input": patch}
        add(at, "response_item", {**call, "status": "completed"})
        output = "apply_patch verification failed: Failed to find expected lines"
        if not beat.failed:
            output = json.dumps({"output": "Success. Updated the following files", "metadata": {"exit_code": 0}})
            before, after = len(beat.old.splitlines()), len(beat.new.splitlines())
            diff = f"@@ -{beat.start_line},{before} +{beat.start_line},{after} @@\n{body}\n"
            change = {f"{story.cwd}/{beat.path}": {"type": "update", "unified_diff": diff, "move_path": None}}
            add(at, "event_msg", {"type": "patch_apply_end", "call_id": call_id, "success": True, "changes": change})
        kind = "custom_tool_call_output"
    else:
        commands = {"read": f"sed -n '1,80p' {beat.path}", "search": f"rg {beat.text} src", "shell": beat.command}
        asks = {"query": beat.text} if beat.tool else {"cmd": commands[beat.kind], "workdir": story.cwd}
        call = {"type": "function_call", "name": beat.tool or "exec_command", "arguments": json.dumps(asks)}
        call["call_id"] = call_id
        add(at, "response_item", call)
        ended = f"Chunk ID: 1\nWall time: {beat.takes_s} seconds\nProcess exited with code {int(beat.failed)}"
        output, kind = f"{ended}\nOutput:\n{beat.result}", "function_call_output"
    add(at + ends_us(beat), "response_item", {"type": kind, "call_id": call_id, "output": output})


def _pi(story: Story) -> str:
    records: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": story.session_id, "timestamp": to_iso(story.start_us), "cwd": story.cwd}
    ]
    calls = 0
    tools = {"read": "read", "edit": "edit", "reject": "edit", "search": "grep", "shell": "bash"}

    def add(at: int, message: dict[str, Any]) -> None:
        parent = records[-1]["id"] if len(records) > 1 else None
        entry = {"type": "message", "id": f"{len(records):08x}", "parentId": parent, "timestamp": to_iso(at)}
        records.append({**entry, "message": {**message, "timestamp": at // 1000}})

    def assistant(at: int, block: dict[str, Any], stop: str) -> None:
        tokens = dict(used(story, calls))
        cost = {"input": 0.00004, "output": 0.0021, "cacheRead": 0.0052, "cacheWrite": 0.0032, "total": 0.01054}
        cost = tokens.pop("cost", cost)
        counts = {"input": tokens["input"], "output": tokens["output"], "cacheRead": tokens["cache_read"],
                  "cacheWrite": tokens["cache_write"], "totalTokens": sum(tokens.values())}  # fmt: skip
        facts = {"api": "anthropic-messages", "provider": "anthropic", "model": story.model}
        usage_ = {"usage": {**counts, "cost": cost}, "stopReason": stop}
        add(at, {"role": "assistant", "content": [block], **facts, **usage_})

    for at, beat in clock(story):
        if beat.kind == "prompt":
            add(at, {"role": "user", "content": [{"type": "text", "text": beat.text}]})
        elif beat.kind == "interrupt":
            assistant(at, {"type": "text", "text": ""}, "aborted")
        elif beat.kind in ("think", "say"):
            calls += 1
            key = "thinking" if beat.kind == "think" else "text"
            assistant(at, {"type": key, key: beat.text}, "stop")
        else:
            calls += 1
            call_id, name = f"call_{calls:03d}", tools.get(beat.kind, beat.tool)
            call = {"type": "toolCall", "id": call_id, "name": name, "arguments": _pi_arguments(beat)}
            assistant(at, call, "toolUse")
            content = [{"type": "text", "text": beat.result}]
            result = {"role": "toolResult", "toolCallId": call_id, "toolName": name, "content": content}
            add(at + ends_us(beat), {**result, "isError": beat.failed or beat.kind == "reject"})
    return _lines(records)


def _pi_arguments(beat: Beat) -> dict[str, Any]:
    if beat.kind in ("edit", "reject"):
        return {"path": beat.path, "edits": [{"oldText": beat.old, "newText": beat.new}]}
    if beat.kind == "read":
        return {"path": beat.path}
    if beat.kind == "tool":
        return {"query": beat.text}
    return {"pattern": beat.text} if beat.kind == "search" else {"command": beat.command}


def _gemini(story: Story) -> str:
    messages: list[dict[str, Any]] = []
    calls = 0
    names = {"read": "read_file", "edit": "replace", "reject": "replace", "search": "search_file_content",
             "shell": "run_shell_command"}  # fmt: skip
    for at, beat in clock(story):
        row: dict[str, Any] = {"id": f"m{len(messages)}", "timestamp": to_iso(at)}
        if beat.kind == "prompt":
            row |= {"type": "user", "content": [{"text": beat.text}]}
        elif beat.kind == "interrupt":
            row |= {"type": "info", "content": "Request cancelled."}
        else:
            calls += 1
            count = used(story, calls)
            read = count["input"] + count["cache_read"] + (count["cache_write"] if story.used else 0)
            tokens = {"input": read, "output": count["output"], "cached": count["cache_read"], "thoughts": 20}
            tokens |= {"tool": 0, "total": read + count["output"] + 20}
            said = beat.text if beat.kind == "say" else ""
            row |= {"type": "gemini", "content": said, "tokens": tokens, "model": story.model}
            if beat.kind == "think":
                row["thoughts"] = [{"subject": "Plan", "description": beat.text, "timestamp": to_iso(at)}]
            elif beat.kind != "say":
                row["toolCalls"] = [_gemini_call(names.get(beat.kind, beat.tool), beat, calls, at)]
        messages.append(row)
    head = {"sessionId": story.session_id, "projectHash": story.project, "startTime": to_iso(story.start_us)}
    return json.dumps({**head, "lastUpdated": messages[-1]["timestamp"], "messages": messages}, indent=2)


def _gemini_call(name: str, beat: Beat, number: int, at: int) -> dict[str, Any]:
    call_id = f"{name}-{number}"
    key = "error" if beat.failed else "output"
    given = {"command": beat.command} if beat.command else {"query" if beat.tool else "pattern": beat.text}
    given = {"file_path": beat.path} if beat.path else given
    if beat.kind in ("edit", "reject"):
        given |= {"old_string": beat.old, "new_string": beat.new}
    status = "cancelled" if beat.kind == "reject" else "error" if beat.failed else "success"
    response = {"functionResponse": {"id": call_id, "name": name, "response": {key: beat.result or "cancelled"}}}
    call = {"id": call_id, "name": name, "args": given, "result": [response]}
    return {**call, "status": status, "timestamp": to_iso(at)}


_WRITERS: dict[str, Callable[[Story], str]] = {
    "claude-code": _claude,
    "codex": _codex,
    "pi": _pi,
    "gemini-cli": _gemini,
}

ARCHIVE = Path(__file__).parents[1] / "src/agentsignals/cli/demo_sessions.tar.gz"


def archived() -> bytes:
    """Return the demo's sessions as a tar archive, compressed."""
    plain = BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path, text in sorted((_path(story), _WRITERS[story.format](story)) for story in stories()):
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            archive.addfile(member, BytesIO(text.encode()))
    return gzip.compress(plain.getvalue(), mtime=0)


if __name__ == "__main__":
    ARCHIVE.write_bytes(archived())
