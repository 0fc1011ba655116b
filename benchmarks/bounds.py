"""What one long session takes: memory above the idle program by its file's size, and seconds a record, in each format.

    python -m benchmarks.bounds [NAME ...] [--mb 100] [--folder FOLDER] [--keep] [--limits]

A session of that many megabytes and one of a quarter are made of the same short records: a prompt, a call, its result
and a word, with words that differ. Each is analysed by one process into a fresh store. `x file` is the peak above that
of a session of ten turns, by the bytes of the file; `longer` is the time of a row against that of the smaller file.
`--limits` tells instead what the program says of the smaller file in little address space (`ulimit -v`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from agentsignals.model import to_iso

CWD = "/work/orchard"
_START_US = 1_772_442_000_000_000
_WORDS = [f"word{n}" for n in range(5_000)]
_ID = "11111111-2222-4333-8444-555555555555"

Turn = tuple[int, int, str, str, str, str]
"""Number, time in microseconds, prompt, command, result and answer."""
Maker = Callable[[IO[str], Iterator[Turn]], None]


def turns(file: IO[str], most_bytes: int, long: bool = False) -> Iterator[Turn]:
    """Turns until the file has so many bytes."""
    draw = random.Random(5)  # noqa: S311  (made-up data, the same every time)

    def said(n: int) -> str:
        return " ".join(draw.choices(_WORDS, k=n))

    n = 0
    while file.tell() < most_bytes:
        result = said(800 if long else 12)
        yield n, _START_US + n * 12_000_000, f"please look at {said(8)}", f"make {said(1)}", result, f"Done {said(5)}"
        n += 1


def _line(file: IO[str], record: Any) -> None:
    file.write(json.dumps(record) + "\n")


def claude(file: IO[str], told: Iterator[Turn]) -> None:
    n = 0

    def add(at: int, kind: str, message: dict[str, Any]) -> None:
        nonlocal n
        base = {"parentUuid": f"{n - 1:08x}-0000-4000-8000-0123456789ab" if n else None, "isSidechain": False}
        base |= {"userType": "external", "cwd": CWD, "sessionId": _ID, "version": "2.0.30", "gitBranch": "main"}
        own = {"uuid": f"{n:08x}-0000-4000-8000-0123456789ab", "timestamp": to_iso(at + n % 4 * 3_000_000)}
        _line(file, {**base, "type": kind, "message": message, **own})
        n += 1

    def bot(at: int, own: str, block: dict[str, Any]) -> None:
        used = {"input_tokens": 11, "output_tokens": 13}
        message = {"id": own, "type": "message", "role": "assistant", "model": "claude-opus-4-1-20250805"}
        add(at, "assistant", {**message, "content": [block], "usage": used, "stop_reason": "end_turn"})

    for number, at, prompt, command, result, answer in told:
        add(at, "user", {"role": "user", "content": prompt})
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}
        bot(at, f"msg_{2 * number}", use)
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": result}
        add(at, "user", {"role": "user", "content": [block]})
        bot(at, f"msg_{2 * number + 1}", {"type": "text", "text": answer})


def prompts(file: IO[str], told: Iterator[Turn]) -> None:
    for n, at, prompt, _, result, _ in told:
        base = {"sessionId": _ID, "cwd": CWD, "version": "2.1.20", "type": "user", "timestamp": to_iso(at)}
        message = {"role": "user", "content": f"{prompt} {result} " * 4}
        parent = f"u{n - 1}" if n else None
        _line(file, {**base, "uuid": f"u{n}", "parentUuid": parent, "message": message})


def codex(file: IO[str], told: Iterator[Turn]) -> None:
    def add(at: int, kind: str, **payload: Any) -> None:
        _line(file, {"timestamp": to_iso(at), "type": kind, "payload": payload})

    add(_START_US, "session_meta", id=_ID, cwd=CWD, originator="codex_cli", cli_version="0.125.0")
    used = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"), 11)
    for n, at, prompt, command, result, answer in told:
        call_id = f"call_{n}"
        add(at, "turn_context", model="gpt-5.1-codex", cwd=CWD, approval_policy="on-request")
        add(at, "event_msg", type="user_message", message=prompt)
        given = json.dumps({"cmd": command, "workdir": CWD})
        add(
            at + 1_000_000, "response_item", type="function_call", name="exec_command", arguments=given, call_id=call_id
        )
        ended = f"Wall time: 0.8 seconds\nProcess exited with code 0\nOutput:\n{result}"
        add(at + 2_000_000, "response_item", type="function_call_output", call_id=call_id, output=ended)
        add(at + 3_000_000, "event_msg", type="agent_message", message=answer)
        content = [{"type": "output_text", "text": answer}]
        add(at + 3_000_000, "response_item", type="message", role="assistant", content=content)
        total = dict.fromkeys(used, 11 * (n + 1)) | {"total_tokens": 22 * (n + 1)}
        info = {"total_token_usage": total, "last_token_usage": {**used, "total_tokens": 22}}
        add(at + 3_000_000, "event_msg", type="token_count", info=info)


def pi(file: IO[str], told: Iterator[Turn]) -> None:
    n = 0

    def add(at: int, **message: Any) -> None:
        nonlocal n
        parent = f"{n - 1:08x}" if n else None
        entry = {"type": "message", "id": f"{n:08x}", "parentId": parent, "timestamp": to_iso(at)}
        _line(file, {**entry, "message": {**message, "timestamp": at // 1000}})
        n += 1

    used = {"input": 12, "output": 90, "cacheRead": 900, "cacheWrite": 8, "totalTokens": 1_010, "cost": {"total": 0.01}}
    facts = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": used}
    _line(file, {"type": "session", "version": 3, "id": _ID, "timestamp": to_iso(_START_US), "cwd": CWD})
    for number, at, prompt, command, result, answer in told:
        add(at, role="user", content=[{"type": "text", "text": prompt}])
        call = {"type": "toolCall", "id": f"call_{number}", "name": "bash", "arguments": {"command": command}}
        add(at + 1_000_000, role="assistant", content=[call], **facts, stopReason="toolUse")
        texts = [{"type": "text", "text": result}]
        add(at + 2_000_000, role="toolResult", toolCallId=f"call_{number}", toolName="bash", content=texts)
        add(at + 3_000_000, role="assistant", content=[{"type": "text", "text": answer}], **facts, stopReason="stop")


def _listed(file: IO[str], head: dict[str, Any], key: str, rows: Iterator[Any]) -> None:
    """A document whose list is written row by row."""
    file.write(f"{json.dumps(head)[:-1]}{', ' if head else ''}{json.dumps(key)}: [")
    for n, row in enumerate(rows):
        file.write((",\n" if n else "\n") + json.dumps(row))
    file.write("]}\n")


def gemini(file: IO[str], told: Iterator[Turn]) -> None:
    def rows() -> Iterator[Any]:
        tokens = {"input": 900, "output": 90, "cached": 800, "thoughts": 20, "tool": 0, "total": 1_010}
        for n, at, prompt, command, result, answer in told:
            yield {"id": f"a{n}", "timestamp": to_iso(at), "type": "user", "content": [{"text": prompt}]}
            response = {
                "functionResponse": {"id": f"c{n}", "name": "run_shell_command", "response": {"output": result}}
            }
            call = {"id": f"c{n}", "name": "run_shell_command", "args": {"command": command}, "result": [response]}
            said = {"type": "gemini", "tokens": tokens, "model": "gemini-2.5-pro"}
            calls = [{**call, "status": "success", "timestamp": to_iso(at)}]
            yield {"id": f"b{n}", "timestamp": to_iso(at + 1_000_000), **said, "content": "", "toolCalls": calls}
            yield {"id": f"d{n}", "timestamp": to_iso(at + 3_000_000), **said, "content": answer}

    at = to_iso(_START_US)
    _listed(file, {"sessionId": _ID, "projectHash": "0" * 64, "startTime": at, "lastUpdated": at}, "messages", rows())


def qwen(file: IO[str], told: Iterator[Turn]) -> None:
    n = 0

    def add(at: int, kind: str, role: str, part: dict[str, Any], **more: Any) -> None:
        nonlocal n
        ids = {"uuid": f"{n:08x}", "parentUuid": f"{n - 1:08x}" if n else None, "sessionId": _ID}
        place = {"timestamp": to_iso(at), "type": kind, "cwd": CWD, "version": "0.15.10"}
        _line(file, {**ids, **place, "message": {"role": role, "parts": [part]}, **more})
        n += 1

    used = {"promptTokenCount": 201, "candidatesTokenCount": 40, "thoughtsTokenCount": 8, "totalTokenCount": 241}
    model = {"model": "qwen3-coder-plus", "usageMetadata": used}
    for number, at, prompt, command, result, answer in told:
        add(at, "user", "user", {"text": prompt})
        name = {"id": f"q{number}", "name": "run_shell_command"}
        add(at + 1_000_000, "assistant", "model", {"functionCall": {**name, "args": {"command": command}}}, **model)
        part = {"functionResponse": {**name, "response": {"output": result}}}
        add(at + 2_000_000, "tool_result", "user", part)
        add(at + 3_000_000, "assistant", "model", {"text": answer}, **model)


def copilot(file: IO[str], told: Iterator[Turn]) -> None:
    n = 0

    def add(kind: str, at: int, **data: Any) -> None:
        nonlocal n
        _line(file, {"type": kind, "data": data, "id": f"e{n}", "timestamp": to_iso(at), "parentId": None})
        n += 1

    context = {"cwd": CWD, "branch": "main", "repository": "dev/orchard"}
    add("session.start", _START_US, sessionId=_ID, copilotVersion="1.0.64", context=context)
    for number, at, prompt, command, result, answer in told:
        add("user.message", at, content=prompt, transformedContent=prompt, attachments=[])
        call = {"toolCallId": f"t{number}", "name": "bash", "arguments": {"command": command}, "type": "function"}
        facts = {"model": "claude-sonnet-4-5", "outputTokens": 90}
        add("assistant.message", at + 1_000_000, messageId=f"m{number}", toolRequests=[call], content="", **facts)
        ended = {"success": True, "result": {"content": result}}
        add("tool.execution_complete", at + 2_000_000, toolCallId=f"t{number}", **ended)
        add("assistant.message", at + 3_000_000, messageId=f"n{number}", toolRequests=[], content=answer, **facts)


def cline(file: IO[str], told: Iterator[Turn]) -> None:
    for n, at, prompt, command, result, answer in told:
        ts = at // 1000
        file.write("[" if not n else ",\n")
        words = prompt if n else f"<task>\n{prompt}\n</task>"
        asked = f"[execute_command for '{command}'] Result:\n{result}"
        call = f"<execute_command>\n<command>{command}</command>\n</execute_command>"
        rows = (
            ("user", words, 0), ("assistant", f"I run it.\n{call}", 1), ("user", asked, 2), ("assistant", answer, 3),
        )  # fmt: skip
        texts = [
            {"role": role, "content": [{"type": "text", "text": text}], "ts": ts + s * 1_000} for role, text, s in rows
        ]
        file.write(",\n".join(json.dumps(row) for row in texts))
    file.write("]\n")


def atif(file: IO[str], told: Iterator[Turn]) -> None:
    def rows() -> Iterator[Any]:
        used = {"prompt_tokens": 120, "completion_tokens": 30, "cached_tokens": 90}
        for n, at, prompt, command, result, answer in told:
            yield {"step_id": 3 * n + 1, "timestamp": to_iso(at), "source": "user", "message": prompt}
            said = {"source": "agent", "model_name": "m-1", "metrics": used}
            call = {"tool_call_id": f"c{n}", "function_name": "Bash", "arguments": {"command": command}}
            seen = {"results": [{"source_call_id": f"c{n}", "content": result}]}
            step = {"step_id": 3 * n + 2, "timestamp": to_iso(at + 1_000_000), "message": "", "tool_calls": [call]}
            yield {**step, **said, "observation": seen}
            yield {"step_id": 3 * n + 3, "timestamp": to_iso(at + 3_000_000), "message": answer, **said}

    head = {"schema_version": "ATIF-v1.6", "session_id": _ID, "agent": {"name": "terminus-2", "version": "1"}}
    _listed(file, head, "steps", rows())


def mini(file: IO[str], told: Iterator[Turn]) -> None:
    def rows() -> Iterator[Any]:
        yield {"role": "system", "content": "Use the bash tool."}
        for n, at, prompt, command, result, answer in told:
            s = at / 1e6
            if not n:
                yield {"role": "user", "content": f"Please solve this issue: {prompt}"}
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            call = {"id": f"c{n}", "type": "function", "function": function}
            used = {"usage": {"prompt_tokens": 1_000, "completion_tokens": 50}}
            extra = {"cost": 0.01, "timestamp": s, "response": used}
            yield {"role": "assistant", "content": answer, "tool_calls": [call], "extra": extra}
            output = f"<returncode>0</returncode>\n<output>\n{result}\n</output>"
            extra = {"raw_output": result, "returncode": 0, "timestamp": s + 2}
            yield {"role": "tool", "tool_call_id": f"c{n}", "content": output, "extra": extra}

    model = {"model_name": "anthropic/quick-1", "model_kwargs": {}}
    config = {"agent": {}, "agent_type": "minisweagent.agents.default.DefaultAgent", "model": model}
    info = {"config": {**config, "environment": {"cwd": CWD}}, "mini_version": "2.0.0", "exit_status": "Submitted"}
    _listed(file, {"info": info, "trajectory_format": "mini-swe-agent-1.1"}, "messages", rows())


def openhands(file: IO[str], told: Iterator[Turn]) -> None:
    """An event a file: what the list takes is in the folder beside it."""
    folder = Path(file.name).parent / "events"
    folder.mkdir()
    n = written = 0

    def add(at: int, kind: str, source: str, **more: Any) -> None:
        nonlocal n, written
        own = {"id": f"{n:08x}", "timestamp": (to_iso(at) or "")[:-1], "source": source}
        n += 1
        text = json.dumps({**own, **more, "kind": kind})
        written += (folder / f"event-{n - 1:05d}-{n - 1:08x}-0000-4000-8000-000000000000.json").write_text(text)
        file.seek(written)  # `turns` asks how much there is

    for number, at, prompt, command, result, answer in told:
        content = [{"type": "text", "text": prompt}]
        add(at, "MessageEvent", "user", llm_message={"role": "user", "content": content})
        same = {"tool_name": "terminal", "tool_call_id": f"c{number}"}
        call = {"id": f"c{number}", "name": "terminal", "arguments": json.dumps({"command": command})}
        thought = [{"type": "text", "text": answer}]
        more = {"thought": thought, **same, "tool_call": call, "llm_response_id": f"r{number}"}
        add(at + 1_000_000, "ActionEvent", "agent", **more)
        seen = {"content": [{"type": "text", "text": result}], "is_error": False, "command": command, "exit_code": 0}
        add(at + 2_000_000, "ObservationEvent", "environment", **same, observation=seen, action_id="a")
    file.seek(0)
    file.write(json.dumps({"id": _ID.replace("-", ""), "agent": {"llm": {"model": "anthropic/toy"}, "kind": "Agent"},
                           "workspace": {"working_dir": CWD}, "stats": {"usage_to_metrics": {}}}))  # fmt: skip


_OPENCODE = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, version text,
  tokens_input integer, time_created integer, time_updated integer, permission text);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer,
  data text);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""
_GOOSE = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, session_type TEXT, working_dir TEXT, created_at TIMESTAMP,
  updated_at TIMESTAMP, provider_name TEXT, model_config_json TEXT, accumulated_output_tokens INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT,
  content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
"""


class _Counted:
    """Says how many bytes went into a database, as a file says where it is."""

    def __init__(self) -> None:
        self.bytes = 0

    def tell(self) -> int:
        return self.bytes


def opencode(path: Path, most_bytes: int) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(_OPENCODE)
        at = _START_US // 1000
        row = ("ses_1", "global", None, CWD, "T", "1.18.33", 0, at, at, None)
        db.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        counted, n = _Counted(), 0

        def add(at: int, message: dict[str, Any], *parts: dict[str, Any]) -> None:
            nonlocal n
            message_id, n = f"msg_{n:08}", n + 1
            texts = [json.dumps({**message, "time": {"created": at, "completed": at + 500}}), *map(json.dumps, parts)]
            db.execute("INSERT INTO message VALUES (?,?,?,?,?)", (message_id, "ses_1", at, at, texts[0]))
            for i, text in enumerate(texts[1:]):
                row = (f"prt_{n:08}_{i}", message_id, "ses_1", at, at, text)
                db.execute("INSERT INTO part VALUES (?,?,?,?,?,?)", row)
            counted.bytes += sum(len(text) + 150 for text in texts)

        used = {"input": 138, "output": 32, "reasoning": 8, "cache": {"read": 64, "write": 0}, "total": 242}
        facts = {"role": "assistant", "agent": "build", "modelID": "m-1", "cost": 0, "tokens": used, "finish": "stop"}
        end = {"type": "step-finish", "reason": "stop", "tokens": used, "cost": 0}
        for number, at_us, prompt, command, result, answer in turns(counted, most_bytes):  # type: ignore[arg-type]
            at = at_us // 1000
            add(at, {"role": "user", "agent": "build"}, {"type": "text", "text": prompt})
            time_ = {"start": at + 1_000, "end": at + 2_000}
            state = {"status": "completed", "input": {"command": command}, "output": result, "time": time_}
            add(at + 1_000, facts, {"type": "tool", "tool": "bash", "callID": f"c{number}", "state": state}, end)
            add(at + 3_000, facts, {"type": "text", "text": answer}, end)


def goose(path: Path, most_bytes: int) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(_GOOSE)
        row = ("20260302_1", "T", "user", CWD, "2026-03-02 09:00:00", "2026-03-02 10:00:00", "anthropic", None, 9)
        db.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?)", row)
        counted = _Counted()

        def add(at: int, role: str, *content: dict[str, Any]) -> None:
            text = json.dumps(content)
            columns = "message_id, session_id, role, content_json, created_timestamp, metadata_json"
            row = (f"m{at}", "20260302_1", role, text, at, '{"userVisible": true, "agentVisible": true}')
            db.execute(f"INSERT INTO messages ({columns}) VALUES (?,?,?,?,?,?)", row)
            counted.bytes += len(text) + 110

        for n, at_us, prompt, command, result, answer in turns(counted, most_bytes):  # type: ignore[arg-type]
            at = at_us // 1_000_000
            add(at, "user", {"type": "text", "text": prompt})
            call = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": command}}}
            add(at + 1, "assistant", {"type": "toolRequest", "id": f"c{n}", "toolCall": call})
            value = {"status": "success", "value": {"content": [{"type": "text", "text": result}], "isError": False}}
            add(at + 2, "user", {"type": "toolResponse", "id": f"c{n}", "toolResult": value})
            add(at + 3, "assistant", {"type": "text", "text": answer})


SHAPES: dict[str, tuple[str, Maker | Callable[[Path, int], None]]] = {
    "claude-long": ("s.jsonl", claude),
    "claude-short": ("s.jsonl", claude),
    "claude-prompts": ("s.jsonl", prompts),
    "codex": ("rollout-2026.jsonl", codex),
    "pi": ("s.jsonl", pi),
    "gemini-cli": ("session.json", gemini),
    "qwen-code": ("s.jsonl", qwen),
    "copilot-cli": ("events.jsonl", copilot),
    "cline": ("1780000000000/api_conversation_history.json", cline),
    "atif": ("trajectory.json", atif),
    "mini-swe-agent": ("s.traj.json", mini),
    "openhands": (f"{_ID.replace('-', '')}/base_state.json", openhands),
    "opencode": ("opencode.db", opencode),
    "goose": ("sessions.db", goose),
}


def make(name: str, folder: Path, most_bytes: int) -> None:
    """One session of a shape, of so many bytes and a turn more."""
    place, maker = SHAPES[name]
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if place.endswith(".db"):
        maker(path, most_bytes)  # type: ignore[arg-type]
        return
    with path.open("w") as file:
        maker(file, turns(file, most_bytes, name == "claude-long"))  # type: ignore[arg-type]


def run(sources: Path, store: Path, limit: int | None = None) -> tuple[float, float, int, str]:
    """CPU seconds and peak MB of one run, its exit code, and its last words."""
    shutil.rmtree(store, ignore_errors=True)
    command = [sys.executable, "-m", "agentsignals", "analyze", str(sources), "--store", str(store), "--jobs", "1"]
    begin = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen([*command, "--no-report"], stdout=said, stderr=said, preexec_fn=begin)  # noqa: PLW1509
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = [line.strip() for line in said.read().splitlines() if line.strip()]
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, child.returncode, "\n".join(words)


def _rows(store: Path) -> int:
    from agentsignals.store import Store  # noqa: PLC0415  (in the parent, for its rows alone)

    return int(Store(store).sql("SELECT coalesce(sum(n_events), 0) FROM sessions").fetchall()[0][0])


def measured(name: str, folder: Path, megabytes: float, limits: bool) -> list[str]:
    """The rows of one shape."""
    figures = []
    for size in (0.005, megabytes / 4, megabytes) if not limits else (megabytes / 4,):
        sources = folder / f"{name}-{size:g}"
        if not sources.is_dir():
            # By another process: a child's peak begins with what its parent holds when it starts.
            maker = multiprocessing.Process(target=make, args=(name, sources, int(size * 1e6)))
            maker.start()
            maker.join()
        held = sum(p.stat().st_size for p in sources.rglob("*") if p.is_file()) / 1e6
        if limits:
            lines = []
            for space in (100, 150, 200, 400):
                _, _, code, words = run(sources, folder / "store", space * 2**20)
                lines.append(f"{name:15} {held:6.0f} MB in {space:5} MB: {code} {' '.join(words.split())[-300:]}")
            return lines
        began = time.perf_counter()
        cpu_s, peak, code, words = run(sources, folder / "store")
        wall_s = time.perf_counter() - began
        if code:
            return [f"{name:15} failed: {words[-300:]}"]
        rows = multiprocessing.Pool(1).apply(_rows, (folder / "store",))
        figures.append((held, cpu_s, wall_s, peak, rows))
    idle, quarter, whole = figures
    each = [(one[1] - idle[1]) / max(one[4], 1) for one in (quarter, whole)]
    factor = (whole[3] - idle[3]) / whole[0]
    table = f"{whole[0]:6.0f} {idle[3]:6.0f} {whole[3]:6.0f} {factor:6.2f} {whole[1]:7.1f} {whole[4]:9,}"
    return [f"{name:15} {table} {1 / each[1]:9,.0f} {each[1] / each[0]:7.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(SHAPES))
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bounds")
    parser.add_argument("--keep", action="store_true", help="leave the inputs where they are")
    parser.add_argument("--limits", action="store_true", help="what the program says in little address space")
    options = parser.parse_args()
    if not options.limits:
        print("session             MB   idle   peak  x file   cpu_s      rows  rows a s  longer")
    for name in options.names:
        print(*measured(name, options.folder, options.mb, options.limits), sep="\n", flush=True)
        if not options.keep:
            shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
