"""A run as Harbor leaves a trial of Claude Code: the trial's result and rewards, and the session as Claude Code wrote
it. There is no gold patch and no patch of the agent's: what it did has to be taken from the session."""

from __future__ import annotations

import difflib
import json
import posixpath
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.stories.run import Run, Step
from benchmarks.stories.task import sha

ROOT = "/app"
_BEGIN = datetime(2026, 4, 7, 8, 0, tzinfo=UTC)


def session_of(name: str) -> str:
    """What the session id of a run has in it."""
    return str(uuid.UUID(sha(name)[:32]))


def write(run: Run, name: str, folder: Path) -> Path:
    """Writes the files of a trial; where it is."""
    task = run.task
    number = int(sha(name)[:6], 16) % 50_000
    begin = _BEGIN + timedelta(minutes=number)
    trial_name = f"{task.name}__{name}"
    trial = folder / trial_name
    session = session_of(name)
    log = trial / "agent" / "sessions" / "projects" / "-app" / f"{session}.jsonl"
    log.parent.mkdir(parents=True)
    records = _records(run, session, begin)
    log.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
    config = {
        "task": {"path": f"tasks/{task.name}"},
        "trial_name": trial_name,
        "trials_dir": "jobs/stories",
        "agent": {"name": "claude-code", "model_name": "anthropic/claude-sonnet-4-6"},
    }
    result = {
        "id": str(uuid.UUID(sha(f"trial {name}")[:32])),
        "task_name": task.name,
        "trial_name": trial_name,
        "trial_uri": f"file:///jobs/stories/{trial_name}",
        "task_id": {"path": f"tasks/{task.name}"},
        "source": "stories",
        "task_checksum": sha(task.name),
        "config": config,
        "agent_info": {"name": "claude-code", "version": "2.1.62"},
        "agent_result": {"n_input_tokens": 90000, "n_cache_tokens": 80000, "n_output_tokens": 4000},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": _time(begin),
        "finished_at": _time(begin + timedelta(minutes=20)),
        "agent_execution": {"started_at": _time(begin), "finished_at": _time(begin + timedelta(minutes=18))},
    }
    (trial / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    (trial / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    tests = [{"name": test, "status": "passed", "duration": 0.1} for test in run.judged]
    summary = {"tests": len(tests), "passed": len(tests), "failed": 0}
    report = {"results": {"tool": {"name": "pytest"}, "summary": summary, "tests": tests}}
    (trial / "verifier").mkdir()
    (trial / "verifier" / "ctrf.json").write_text(json.dumps(report), encoding="utf-8")
    (trial / "verifier" / "reward.txt").write_text("1\n", encoding="utf-8")
    return trial


def _records(run: Run, session: str, begin: datetime) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any], **more: Any) -> None:
        number = len(records)
        common = {
            "parentUuid": records[-1]["uuid"] if records else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": ROOT,
            "sessionId": session,
            "version": "2.1.62",
            "gitBranch": "main",
        }
        own = {
            "uuid": str(uuid.UUID(sha(f"{session}{number}")[:32])),
            "timestamp": _time(begin + timedelta(seconds=7 * number)),
        }
        records.append({**common, "type": kind, "message": message, **own, **more})

    add("user", {"role": "user", "content": run.asked})
    for number, step in enumerate(run.steps):
        message_id, call_id = f"msg_{sha(session)[:8]}{number}", f"toolu_{sha(session)[:12]}{number}"
        said: dict[str, Any] = {"model": "claude-sonnet-4-6", "id": message_id, "type": "message", "role": "assistant"}
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 9000,
            "output_tokens": 120,
        }
        if step.thought:
            add(
                "assistant",
                {**said, "content": [{"type": "text", "text": step.thought}], "stop_reason": None, "usage": usage},
            )
        name, arguments, content, structured = _call(step)
        call = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        add("assistant", {**said, "content": [call], "stop_reason": "tool_use", "usage": usage})
        failed = step.code != 0
        answer = {"tool_use_id": call_id, "type": "tool_result", "content": content, "is_error": failed}
        add("user", {"role": "user", "content": [answer]}, toolUseResult=f"Error: {content}" if failed else structured)
    end = {"model": "claude-sonnet-4-6", "id": f"msg_{sha(session)[:8]}end", "type": "message", "role": "assistant"}
    usage = {"input_tokens": 4, "cache_read_input_tokens": 9900, "output_tokens": 60}
    text = [{"type": "text", "text": "The issue is resolved; the tests pass."}]
    add("assistant", {**end, "content": text, "stop_reason": "end_turn", "usage": usage})
    return records


def _call(step: Step) -> tuple[str, dict[str, Any], str, Any]:
    """The tool, its input, the text of its result, the structured result that Claude Code keeps beside it."""
    path = posixpath.join(ROOT, step.path)
    if step.kind == "shell":
        content = f"Exit code {step.code}\n{step.output}" if step.code else step.output
        kept = {"stdout": step.output, "stderr": "", "interrupted": False, "isImage": False}
        return "Bash", {"command": step.command, "description": "Run a command"}, content, kept
    if step.kind == "fetch":
        kept = {"bytes": len(step.output), "code": 200, "codeText": "OK", "result": step.output, "url": step.command}
        return "WebFetch", {"url": step.command, "prompt": "Return the content as it is"}, step.output, kept
    if step.kind == "view":
        lines = step.output.split("\n")
        content = "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, 1))
        file = {
            "filePath": path,
            "content": step.output,
            "numLines": len(lines),
            "startLine": 1,
            "totalLines": len(lines),
        }
        return "Read", {"file_path": path}, content, {"type": "text", "file": file}
    patch = _structured(step.before or "", step.after or "")
    if step.kind == "create":
        new = step.before is None
        content = f"File created successfully at: {path}" if new else f"The file {path} has been updated."
        kept = {"type": "create" if new else "update", "filePath": path, "content": step.after}
        return (
            "Write",
            {"file_path": path, "content": step.after},
            content,
            {**kept, "structuredPatch": [] if new else patch},
        )
    arguments = {"file_path": path, "old_string": step.hunk.old, "new_string": step.hunk.new, "replace_all": False}
    kept = {"filePath": path, "oldString": step.hunk.old, "newString": step.hunk.new, "originalFile": step.before}
    content = f"The file {path} has been updated successfully."
    return "Edit", arguments, content, {**kept, "structuredPatch": patch, "userModified": False, "replaceAll": False}


def _structured(before: str, after: str) -> list[dict[str, Any]]:
    old, new = before.splitlines(), after.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        place = {"oldStart": i1 + 1, "oldLines": i2 - i1, "newStart": j1 + 1, "newLines": j2 - j1}
        hunks.append({**place, "lines": lines})
    return hunks


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
