"""Sessions as files of Claude Code, Codex, Gemini CLI and Pi, where these agents keep them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.plants.tokens import Call, Meter
from tests.plants.work import Act, Work

ROW = dict[str, Any]


def write(folder: Path, works: list[Work]) -> Path:
    """One file a session, under the folder of its agent."""
    for work in works:
        place, text = _WRITERS[work.agent](work)
        path = folder / work.agent / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _lines(rows: list[ROW]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class _Acting:
    """Goes through the acts of a session with clock and meter."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.meter = Meter()
        self.rows: list[ROW] = []
        now = work.start
        for number, act in enumerate(work.acts):
            now += timedelta(seconds=act.wait_s)
            if act.kind == "prompt":
                self.prompt(now, act)
                self.meter.add(act.text)
                continue
            call = self.meter.call(now, act.text + act.old + act.new + act.command)
            if act.kind == "say":
                self.say(now, act, call, number)
                continue
            done = now + timedelta(seconds=act.takes_s)
            self.tool(now, done, act, call, number)
            self.meter.add(act.result)
            now = done

    def prompt(self, at: datetime, act: Act) -> None:
        raise NotImplementedError

    def say(self, at: datetime, act: Act, call: Call, number: int) -> None:
        raise NotImplementedError

    def tool(self, at: datetime, done: datetime, act: Act, call: Call, number: int) -> None:
        raise NotImplementedError


class _Claude(_Acting):
    def prompt(self, at: datetime, act: Act) -> None:
        self._row("user", at, {"role": "user", "content": act.text})

    def say(self, at: datetime, act: Act, call: Call, number: int) -> None:
        self._answer(at, {"type": "text", "text": act.text}, call, number, "end_turn")

    def tool(self, at: datetime, done: datetime, act: Act, call: Call, number: int) -> None:
        names = {"read": "Read", "search": "Grep", "edit": "Edit", "shell": "Bash", "tool": act.tool}
        call_id = f"toolu_{self.work.session_id[:6]}{number:04d}"
        block = {"type": "tool_use", "id": call_id, "name": names[act.kind], "input": _arguments(act, self.work.cwd)}
        self._answer(at, block, call, number, "tool_use")
        text = f"Exit code 1\n{act.result}" if act.failed and act.kind == "shell" else act.result
        result = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": act.failed}
        more: Any = f"Error: {text}" if act.failed else {"stdout": text, "stderr": "", "interrupted": False}
        if act.kind == "edit" and not act.failed:
            more = {"filePath": f"{self.work.cwd}/{act.path}", "structuredPatch": [_hunk(act)], "userModified": False}
        self._row("user", done, {"role": "user", "content": [result]}, toolUseResult=more)

    def _answer(self, at: datetime, block: ROW, call: Call, number: int, stop: str) -> None:
        usage = {
            "input_tokens": 3,
            "cache_read_input_tokens": call.cached,
            "cache_creation_input_tokens": call.fresh,
            "cache_creation": {"ephemeral_5m_input_tokens": call.fresh, "ephemeral_1h_input_tokens": 0},
            "output_tokens": call.output,
        }
        message = {"id": f"msg_{self.work.session_id[:6]}{number:04d}", "type": "message", "role": "assistant"}
        message |= {"model": "claude-sonnet-4-5-20250929", "content": [block], "stop_reason": stop, "usage": usage}
        self._row("assistant", at, message)

    def _row(self, kind: str, at: datetime, message: ROW, **more: Any) -> None:
        work, rows = self.work, self.rows
        row = {"parentUuid": rows[-1]["uuid"] if rows else None, "isSidechain": False, "userType": "external"}
        row |= {"cwd": work.cwd, "sessionId": work.session_id, "version": "2.1.90", "gitBranch": "main"}
        row |= {"type": kind, "message": message, "uuid": f"{work.session_id[:-4]}{len(rows):04x}"}
        rows.append({**row, "timestamp": _stamp(at), **more})


def _claude(work: Work) -> tuple[str, str]:
    return f"projects/-home-ada-{work.repository}/{work.session_id}.jsonl", _lines(_Claude(work).rows)


def _arguments(act: Act, cwd: str) -> ROW:
    if act.kind == "read":
        return {"file_path": f"{cwd}/{act.path}"}
    if act.kind == "search":
        return {"pattern": act.text}
    if act.kind == "edit":
        return {"file_path": f"{cwd}/{act.path}", "old_string": act.old, "new_string": act.new}
    if act.kind == "shell":
        return {"command": act.command, "description": "Run it"}
    return {"query": act.text}


def _hunk(act: Act) -> ROW:
    old, new = act.old.splitlines(), act.new.splitlines()
    lines = [f"-{line}" for line in old] + [f"+{line}" for line in new]
    return {"oldStart": act.line, "oldLines": len(old), "newStart": act.line, "newLines": len(new), "lines": lines}


class _Codex(_Acting):
    def __init__(self, work: Work) -> None:
        self.total: dict[str, int] = {}
        super().__init__(work)

    def prompt(self, at: datetime, act: Act) -> None:
        if not self.rows:
            url = f"https://example.org/ada/{self.work.repository}.git"
            git = {"branch": "main", "commit_hash": "0" * 40, "repository_url": url}
            meta = {"id": self.work.session_id, "cwd": self.work.cwd, "originator": "codex_cli_rs"}
            self._row("session_meta", at, {**meta, "cli_version": "0.125.0", "source": "cli", "git": git})
        self._row("turn_context", at, {"model": "gpt-5.1-codex", "cwd": self.work.cwd, "approval_policy": "never"})
        self._row("event_msg", at, {"type": "user_message", "message": act.text})

    def say(self, at: datetime, act: Act, call: Call, number: int) -> None:
        del number
        content = [{"type": "output_text", "text": act.text}]
        self._row("event_msg", at, {"type": "agent_message", "message": act.text})
        self._row("response_item", at, {"type": "message", "role": "assistant", "content": content})
        self._count(at, call)

    def tool(self, at: datetime, done: datetime, act: Act, call: Call, number: int) -> None:
        call_id = f"call_{self.work.session_id[:6]}{number:04d}"
        if act.kind == "edit":
            self._patch(at, done, act, call_id)
        else:
            shell = {"read": f"cat {act.path}", "search": f"rg {act.text}", "shell": act.command}
            name = "exec_command" if act.kind in shell else act.tool
            words = {"cmd": shell[act.kind], "workdir": self.work.cwd} if act.kind in shell else {"query": act.text}
            item = {"type": "function_call", "name": name, "arguments": json.dumps(words), "call_id": call_id}
            self._row("response_item", at, item)
            state = f"Wall time: {act.takes_s:.4f} seconds\nProcess exited with code {int(act.failed)}"
            output = f"Chunk ID: a1b2c3\n{state}\nOriginal token count: 1\nOutput:\n{act.result}"
            self._row("response_item", done, {"type": "function_call_output", "call_id": call_id, "output": output})
        self._count(done, call)

    def _patch(self, at: datetime, done: datetime, act: Act, call_id: str) -> None:
        body = "\n".join([*(f"-{x}" for x in act.old.splitlines()), *(f"+{x}" for x in act.new.splitlines())])
        patch = f"*** Begin Patch\n*** Update File: {act.path}\n@@\n{body}\n*** End Patch"
        item = {"type": "custom_tool_call", "name": "apply_patch", "call_id": call_id, "status": "completed"}
        self._row("response_item", at, {**item, "input": patch})
        hunk = _hunk(act)
        diff = f"@@ -{act.line},{hunk['oldLines']} +{act.line},{hunk['newLines']} @@\n{body}\n"
        change = {f"{self.work.cwd}/{act.path}": {"type": "update", "unified_diff": diff, "move_path": None}}
        self._row("event_msg", at, {"type": "patch_apply_end", "call_id": call_id, "success": True, "changes": change})
        output = json.dumps({"output": "Success. Updated the following files", "metadata": {"exit_code": 0}})
        self._row("response_item", done, {"type": "custom_tool_call_output", "call_id": call_id, "output": output})

    def _count(self, at: datetime, call: Call) -> None:
        last = {"input_tokens": call.fresh + call.cached, "cached_input_tokens": call.cached}
        last |= {"output_tokens": call.output, "reasoning_output_tokens": 0}
        last["total_tokens"] = last["input_tokens"] + last["output_tokens"]
        self.total = {name: n + self.total.get(name, 0) for name, n in last.items()}
        info = {"total_token_usage": self.total, "last_token_usage": last}
        self._row("event_msg", at, {"type": "token_count", "info": info})

    def _row(self, kind: str, at: datetime, payload: ROW) -> None:
        self.rows.append({"timestamp": _stamp(at), "type": kind, "payload": payload})


def _codex(work: Work) -> tuple[str, str]:
    day = work.start.strftime("%Y/%m/%d")
    return f"sessions/{day}/rollout-{work.start:%Y-%m-%dT%H-%M-%S}-{work.session_id}.jsonl", _lines(_Codex(work).rows)


class _Gemini(_Acting):
    def prompt(self, at: datetime, act: Act) -> None:
        self._row(at, "user", content=[{"text": act.text}])

    def say(self, at: datetime, act: Act, call: Call, number: int) -> None:
        del number
        self._row(at, "gemini", content=act.text, model="gemini-2.5-pro", tokens=self._tokens(call))

    def tool(self, at: datetime, done: datetime, act: Act, call: Call, number: int) -> None:
        names = {"read": "read_file", "search": "search_file_content", "edit": "replace", "shell": "run_shell_command"}
        name = names.get(act.kind, act.tool)
        call_id = f"{name}-{number}"
        answer = {"id": call_id, "name": name, "response": {"error" if act.failed else "output": act.result}}
        made = {"id": call_id, "name": name, "args": _arguments(act, self.work.cwd), "timestamp": _stamp(done)}
        made |= {"result": [{"functionResponse": answer}], "status": "error" if act.failed else "success"}
        self._row(at, "gemini", content="", model="gemini-2.5-pro", tokens=self._tokens(call), toolCalls=[made])

    def _tokens(self, call: Call) -> ROW:
        whole = call.fresh + call.cached
        counts = {"input": whole, "output": call.output, "cached": call.cached, "thoughts": 0, "tool": 0}
        return {**counts, "total": whole + call.output}

    def _row(self, at: datetime, kind: str, **more: Any) -> None:
        self.rows.append({"id": f"m{len(self.rows)}", "timestamp": _stamp(at), "type": kind, **more})


def _gemini(work: Work) -> tuple[str, str]:
    rows = _Gemini(work).rows
    head = {"sessionId": work.session_id, "projectHash": work.repository.encode().hex().ljust(64, "0")}
    head |= {"startTime": rows[0]["timestamp"], "lastUpdated": rows[-1]["timestamp"]}
    place = f"tmp/{head['projectHash']}/chats/session-{work.start:%Y-%m-%dT%H-%M}-{work.session_id[:8]}.json"
    return place, json.dumps({**head, "messages": rows})


class _Pi(_Acting):
    def prompt(self, at: datetime, act: Act) -> None:
        self._row(at, {"role": "user", "content": [{"type": "text", "text": act.text}]})

    def say(self, at: datetime, act: Act, call: Call, number: int) -> None:
        del number
        self._answer(at, {"type": "text", "text": act.text}, call, "stop")

    def tool(self, at: datetime, done: datetime, act: Act, call: Call, number: int) -> None:
        names = {"read": "read", "search": "grep", "edit": "edit", "shell": "bash"}
        words = {"read": {"path": act.path}, "search": {"pattern": act.text}, "shell": {"command": act.command}}
        words["edit"] = {"path": act.path, "edits": [{"oldText": act.old, "newText": act.new}]}
        name, call_id = names.get(act.kind, act.tool), f"call_{number:04d}"
        block = {"type": "toolCall", "id": call_id, "name": name, "arguments": words.get(act.kind, {"query": act.text})}
        self._answer(at, block, call, "toolUse")
        result = {"role": "toolResult", "toolCallId": call_id, "toolName": name, "isError": act.failed}
        self._row(done, {**result, "content": [{"type": "text", "text": act.result}]})

    def _answer(self, at: datetime, block: ROW, call: Call, stop: str) -> None:
        usage: ROW = {"input": 3, "output": call.output, "cacheRead": call.cached, "cacheWrite": call.fresh}
        usage |= {"totalTokens": sum(usage.values()), "cost": call.dollars}
        answer = {"role": "assistant", "content": [block], "api": "anthropic-messages", "provider": "anthropic"}
        self._row(at, {**answer, "model": "claude-sonnet-4-5", "usage": usage, "stopReason": stop})

    def _row(self, at: datetime, message: ROW) -> None:
        number = len(self.rows)
        parent = f"{number - 1:08x}" if number else None
        row = {"type": "message", "id": f"{number:08x}", "parentId": parent, "timestamp": _stamp(at)}
        self.rows.append({**row, "message": {**message, "timestamp": int(at.timestamp() * 1000)}})


def _pi(work: Work) -> tuple[str, str]:
    head = {"type": "session", "version": 3, "id": work.session_id, "timestamp": _stamp(work.start), "cwd": work.cwd}
    place = f"sessions/--home-ada-{work.repository}--/{work.start:%Y-%m-%dT%H-%M-%S}_{work.session_id}.jsonl"
    return place, _lines([head, *_Pi(work).rows])


_WRITERS: dict[str, Callable[[Work], tuple[str, str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "pi": _pi,
}
