"""How calls ended, asked of every format alike (design/formats.md#how-a-call-ended)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsignals.formats import by_name, formats, profiles
from agentsignals.formats.outcome import COMMAND_SAYS, TOOL_SAYS, Pattern, ending, error_class, exit_code, words_of
from agentsignals.formats.profile import Profile
from agentsignals.model import Absent, ShellKind, ToolCall, ToolClass
from agentsignals.shell.outputs import found_nothing
from agentsignals.signals.catalog import measure
from agentsignals.store import Store
from agentsignals.views.session import SessionView
from tests import atif_steps, inspect_logs, otel_spans
from tests.formats import reading

TEST, SEARCH, SLEEP = "pytest -q", "cd src && rg -n nothing_like_this .", "sleep 999"
QUESTIONS = {
    "worked": (TEST, "ok", "done"),
    "error": (TEST, "error", "error_result"),
    "exit": (TEST, "error", "exit_nonzero"),
    "no_hit": (SEARCH, "ok", "nothing_found"),
    "timeout": (SLEEP, "error", "timed_out"),
    "refused": (TEST, "rejected", "refused"),
    "cancelled": (TEST, "cancelled", "cancelled"),
}
AT = "2026-03-01T10:00:00.000Z"


def claude(question: str) -> list[dict[str, Any]]:
    text, failed = {
        "worked": ("3 passed", False),
        "error": (
            "<tool_use_error>InputValidationError: Bash failed due to the following issue: x</tool_use_error>",
            True,
        ),
        "exit": ("Exit code 1\n1 failed", True),
        "no_hit": ("", False),
        "timeout": ("Exit code 143\nCommand timed out after 2m 0.0s", True),
        "refused": ("The user doesn't want to proceed with this tool use. The tool use was rejected.", True),
        "cancelled": ("<tool_use_error>Sibling tool call errored</tool_use_error>", True),
    }[question]
    use = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": QUESTIONS[question][0]}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": text, "is_error": failed}
    shared = {"sessionId": "s", "timestamp": AT, "cwd": "/w", "isSidechain": False}
    return [
        {**shared, "type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "go"}},
        {
            **shared,
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "message": {"id": "m", "role": "assistant", "model": "m", "content": [use]},
        },
        {**shared, "type": "user", "uuid": "3", "parentUuid": "2", "message": {"role": "user", "content": [result]}},
    ]


def codex(question: str) -> list[dict[str, Any]]:
    head = "Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code {}\nOriginal token count: 3\nOutput:\n{}"
    output = {
        "worked": head.format(0, "3 passed"),
        "error": "exec_command failed: the shell could not be started",
        "exit": head.format(1, "1 failed"),
        "no_hit": head.format(1, ""),
        "timeout": head.format(124, "command timed out after 10000 milliseconds"),
        "refused": "exec_command failed: rejected by user",
        "cancelled": "aborted by user after 9.9s",
    }[question]
    arguments = json.dumps({"cmd": QUESTIONS[question][0]})
    call = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": arguments}
    return [
        {"timestamp": AT, "type": "session_meta", "payload": {"id": "s", "cwd": "/w", "originator": "codex_cli_rs"}},
        {"timestamp": AT, "type": "response_item", "payload": call},
        {
            "timestamp": AT,
            "type": "response_item",
            "payload": {"type": "function_call_output", "call_id": "c", "output": output},
        },
    ]


def codex_exec(question: str) -> list[dict[str, Any]]:
    facts = {
        "worked": {"exit_code": 0, "status": "completed", "aggregated_output": "3 passed"},
        "error": {"exit_code": None, "status": "failed", "aggregated_output": "no such program"},
        "exit": {"exit_code": 1, "status": "failed", "aggregated_output": "1 failed"},
        "no_hit": {"exit_code": 1, "status": "failed", "aggregated_output": ""},
        "timeout": {"exit_code": 124, "status": "failed", "aggregated_output": ""},
        "refused": {"exit_code": None, "status": "declined", "aggregated_output": ""},
    }[question]
    item = {"id": "i", "type": "command_execution", "command": QUESTIONS[question][0], **facts}
    return [{"type": "thread.started", "thread_id": "s"}, {"type": "item.completed", "item": item}]


def pi(question: str) -> list[dict[str, Any]]:
    text, failed = {
        "worked": ("3 passed", False),
        "error": ("Blocked by an extension.", True),
        "exit": ("1 failed\n\nCommand exited with code 1", True),
        "no_hit": ("(no output)\n\nCommand exited with code 1", True),
        "timeout": ("Command timed out after 10 seconds", True),
        "cancelled": ("Command aborted", True),
    }[question]
    call = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": QUESTIONS[question][0]}}
    bot = {"api": "x", "provider": "p", "model": "m", "stopReason": "toolUse"}
    result = {"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": failed}
    entries: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [call], **bot},
        {**result, "content": [{"type": "text", "text": text}]},
    ]
    return [
        {"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/w"},
        *(
            {"type": "message", "id": str(n), "parentId": str(n - 1) if n else None, "timestamp": AT, "message": m}
            for n, m in enumerate(entries)
        ),
    ]


def opencode(question: str) -> dict[str, Any]:
    state: dict[str, Any] = {
        "worked": {"status": "completed", "output": "3 passed", "metadata": {"exit": 0}},
        "error": {"status": "error", "error": "Error: the arguments are not as declared"},
        "exit": {"status": "completed", "output": "1 failed", "metadata": {"exit": 1}},
        "no_hit": {"status": "completed", "output": "(no output)", "metadata": {"exit": 1}},
        "timeout": {
            "status": "completed",
            "output": "<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms",
            "metadata": {"exit": None},
        },
        "refused": {"status": "error", "error": "Error: The user rejected permission to use this specific tool call"},
        "cancelled": {"status": "error", "error": "Tool execution aborted"},
    }[question]
    part = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
    state["input"] = {"command": QUESTIONS[question][0]}
    info = {"id": "m", "role": "assistant", "modelID": "m", "providerID": "p", "time": {"created": 1}}
    about = {"id": "ses_1", "directory": "/w", "time": {"created": 1}}
    return {"info": about, "messages": [{"info": info, "parts": [part]}]}


def gemini(question: str) -> dict[str, Any]:
    output, status = gemini_says(question)
    response = {"functionResponse": {"id": "c", "name": "run_shell_command", "response": {"output": output}}}
    call = {"id": "c", "name": "run_shell_command", "args": {"command": QUESTIONS[question][0]}, "status": status,
            "timestamp": AT, "result": [response]}  # fmt: skip
    message = {"id": "m", "timestamp": AT, "type": "gemini", "content": "", "model": "m", "toolCalls": [call]}
    return {"sessionId": "s", "projectHash": "0" * 64, "startTime": AT, "lastUpdated": AT, "messages": [message]}


def qwen(question: str) -> list[dict[str, Any]]:
    """It began as Gemini CLI, and says the same in records of its own."""
    output, status = gemini_says(question)
    call = {"functionCall": {"id": "c", "name": "run_shell_command", "args": {"command": QUESTIONS[question][0]}}}
    response = {"error" if status in ("error", "cancelled") else "output": output}
    back = {"functionResponse": {"id": "c", "name": "run_shell_command", "response": response}}
    shared = {"sessionId": "s", "timestamp": AT, "cwd": "/w", "version": "0.15.10"}
    asked = {"type": "assistant", "uuid": "1", "parentUuid": None, "message": {"role": "model", "parts": [call]}}
    came = {"type": "tool_result", "uuid": "2", "parentUuid": "1", "message": {"role": "user", "parts": [back]}}
    return [{**shared, **asked}, {**shared, **came, "toolCallResult": {"callId": "c", "status": status}}]


def gemini_says(question: str) -> tuple[str, str]:
    return {
        "worked": ("Output: 3 passed\nExit Code: 0", "success"),
        "error": ("params must have required property 'command'", "error"),
        "exit": ("Output: 1 failed\nExit Code: 1\nProcess Group PGID: 7", "success"),
        "no_hit": (
            f"Command: {SEARCH}\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 1",
            "success",
        ),
        "timeout": ("Command was automatically cancelled because it exceeded the timeout of 5.0 minutes", "success"),
        "refused": ("[Operation Cancelled] Reason: User denied execution.", "cancelled"),
        "cancelled": ("[Operation Cancelled] Reason: Operation cancelled", "cancelled"),
    }[question]


def continue_(question: str) -> dict[str, Any]:
    state, text = {
        "worked": ("done", "3 passed\n\nStderr: warned"),
        "error": ("errored", "Tool Bash not found"),
        "exit": ("errored", "Error executing tool Bash: Error (exit code 1): 1 failed"),
        "timeout": ("done", "\n\n[Command timed out after 5 seconds of no output]"),
        "refused": ("canceled", "Permission denied by user"),
        "cancelled": ("canceled", ""),
    }[question]
    call = {"id": "c", "function": {"name": "Bash", "arguments": json.dumps({"command": QUESTIONS[question][0]})}}
    states = [{"toolCallId": "c", "toolCall": call, "status": state, "output": [{"content": text}]}]
    item = {"message": {"role": "assistant", "content": "", "toolCalls": [call]}, "toolCallStates": states}
    return {"sessionId": "s", "title": "t", "workspaceDirectory": "/w", "history": [item]}


def amp(question: str) -> dict[str, Any]:
    run: dict[str, Any] = {
        "worked": {"status": "done", "result": {"output": "3 passed", "exitCode": 0}},
        "error": {"status": "error", "error": {"message": "tool not found"}},
        "exit": {"status": "done", "result": {"output": "1 failed", "exitCode": 1}},
        "no_hit": {"status": "done", "result": {"output": "", "exitCode": 1}},
        "timeout": {"status": "done", "result": {"output": "", "exitCode": -1, "stopCode": "inactivity",
                                                 "stopReason": "Command timed out after 9 seconds of inactivity"}},
        "refused": {"status": "rejected-by-user", "reason": "no"},
        "cancelled": {"status": "cancelled"},
    }[question]  # fmt: skip
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"cmd": QUESTIONS[question][0]}}
    messages = [
        {"role": "assistant", "messageId": 0, "content": [call]},
        {"role": "user", "messageId": 1, "content": [{"type": "tool_result", "toolUseID": "c", "run": run}]},
    ]
    return {"v": 1, "id": "T-1", "created": 1, "messages": messages}


def goose(question: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "worked": {"status": "success", "value": {"content": [], "structuredContent": {"exit_code": 0}}},
        "error": {"status": "error", "error": "-32603: no such tool"},
        "exit": {"status": "success", "value": {"content": [], "structuredContent": {"exit_code": 1}}},
        "no_hit": {"status": "success", "value": {"content": [], "structuredContent": {"exit_code": 1}}},
        "timeout": {"status": "success", "value": {"content": [], "structuredContent": {"timed_out": True}}},
        "refused": {
            "status": "success",
            "value": [{"type": "text", "text": "The user has declined to run this tool."}],
        },
        "cancelled": {"status": "error", "error": "-32603: Interrupted by the user"},
    }[question]
    asked = {"status": "success", "value": {"name": "shell", "arguments": {"command": QUESTIONS[question][0]}}}
    conversation = [
        {
            "role": "assistant",
            "created": 1_780_000_000,
            "content": [{"type": "toolRequest", "id": "c", "toolCall": asked}],
        },
        {
            "role": "user",
            "created": 1_780_000_000,
            "content": [{"type": "toolResponse", "id": "c", "toolResult": result}],
        },
    ]
    return {"id": "s", "session_type": "user", "working_dir": "/w", "conversation": conversation}


def crush(question: str) -> dict[str, Any]:
    content, is_error = {
        "worked": ("3 passed\n\n<cwd>/w</cwd>", False),
        "error": ("missing command", True),
        "exit": ("1 failed\nExit code 1\n\n<cwd>/w</cwd>", False),
        "no_hit": ("\nexit status 1\nExit code 1\n\n<cwd>/w</cwd>", False),
        "refused": ("User denied permission", True),
        "cancelled": ("Error: user cancelled assistant tool calling", True),
    }[question]
    asked = {"id": "c", "name": "bash", "input": json.dumps({"command": QUESTIONS[question][0]})}
    came = {"tool_call_id": "c", "name": "bash", "content": content, "is_error": is_error}
    messages = [
        {"role": "assistant", "parts": [{"type": "tool_call", "data": asked}]},
        {"role": "tool", "parts": [{"type": "tool_result", "data": came}]},
    ]
    return {"id": "s", "parent_session_id": None, "children_cost": None, "messages": messages}


def sharegpt(question: str) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "worked": {"output": "3 passed", "exit_code": 0},
        "error": {"error": "no such tool"},
        "exit": {"output": "1 failed", "exit_code": 1},
        "timeout": {"output": "", "exit_code": 124, "error": "Command timed out after 5 seconds"},
    }[question]
    call = json.dumps({"name": "terminal", "arguments": {"command": QUESTIONS[question][0]}})
    back = json.dumps({"name": "terminal", "content": answer})
    return {
        "conversations": [
            {"from": "human", "value": "go"},
            {"from": "gpt", "value": f"<tool_call>\n{call}\n</tool_call>"},
            {"from": "tool", "value": f"<tool_response>\n{back}\n</tool_response>"},
        ]
    }


def vscode(question: str) -> dict[str, Any]:
    from tests.formats import vscode_chats as vs  # noqa: PLC0415  (only here)

    text, code, confirmed = {
        "worked": ("3 passed", 0, 1),
        "error": ("ERROR while calling tool: Invalid input path", None, 1),
        "exit": ("1 failed\n\nCommand exited with code 1", 1, 1),
        "no_hit": ("Command exited with code 1", 1, 1),
        "refused": ("The user chose to skip the tool call, they want to proceed without running it", None, 5),
        "cancelled": ("The user cancelled the tool call.", None, 1),
    }[question]
    command = QUESTIONS[question][0]
    panel = vs.shown("run_in_terminal", "p", confirmed, **vs.terminal(command, code))
    results = {"c": {"content": [{"value": text}]}}
    rounds = [vs.model("", vs.asks("c", "run_in_terminal", command=command))]
    return vs.chat(vs.request("go", 1, [panel], rounds, results))


def copilot(question: str) -> list[dict[str, Any]]:
    from tests.formats.copilot_events import done, failed, says, start, user  # noqa: PLC0415
    from tests.formats.copilot_events import request as asks  # noqa: PLC0415

    result = {
        "worked": done("c", "3 passed\n<exited with exit code 0>"),
        "exit": done("c", "1 failed\n<exited with exit code 1>"),
        "no_hit": done("c", "<exited with exit code 1>"),
        "error": failed("c", "The session was stopped.", "failure"),
        "refused": failed("c", "The user rejected this tool call.", "rejected"),
        "cancelled": failed("c", "aborted", "aborted"),
    }[question]
    return [start(), user("go"), says("m", "", asks("c", "bash", command=QUESTIONS[question][0])), result]


def droid(question: str) -> list[dict[str, Any]]:
    text, failed = {
        "worked": ("3 passed", False),
        "error": ("Error: the arguments are not as declared", True),
        "exit": ("Error: Command failed (exit code: 1)\n1 failed", True),
        "no_hit": ("Error: Command failed (exit code: 1)", True),
        "timeout": ("Error: Command timed out after 60 seconds", True),
    }[question]
    use = {"type": "tool_use", "id": "c", "name": "Execute", "input": {"command": QUESTIONS[question][0]}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": text, "is_error": failed}
    row = {"type": "message", "timestamp": AT}
    return [
        {"type": "session_start", "id": "s1", "title": "t", "owner": "me", "version": 2, "cwd": "/w"},
        {**row, "id": "1", "message": {"role": "assistant", "content": [use]}},
        {**row, "id": "2", "message": {"role": "user", "content": [result]}},
    ]


def kiro(question: str) -> dict[str, Any]:
    shell = {"worked": ("0", "3 passed"), "exit": ("1", "1 failed"), "no_hit": ("1", "")}.get(question)
    content = (
        [{"Json": {"exit_status": shell[0], "stdout": shell[1], "stderr": ""}}] if shell else [{"Text": "stopped"}]
    )
    result = {"tool_use_id": "c", "content": content, "status": "Success" if shell else "Error"}
    use = {"id": "c", "name": "execute_bash", "args": {"command": QUESTIONS[question][0]}}
    words = {"refused": "use make", "cancelled": ""}.get(question)
    back = "ToolUseResults" if shell or question == "error" else "CancelledToolUses"
    history = [
        {
            "user": {"content": {"Prompt": {"prompt": "go"}}},
            "assistant": {"ToolUse": {"message_id": "", "content": "", "tool_uses": [use]}},
        },
        {
            "user": {"content": {back: {"prompt": words, "tool_use_results": [result]}}},
            "assistant": {"Response": {"message_id": "", "content": "ok"}},
        },
    ]
    return {"conversation_id": "c", "history": history}


def mini(question: str) -> dict[str, Any]:
    result = {
        "worked": "<returncode>0</returncode>\n<output>\n3 passed</output>",
        "exit": "<returncode>1</returncode>\n<output>\n1 failed</output>",
        "no_hit": "<returncode>1</returncode>\n<output>\n</output>",
        "timeout": "The last command <command>sleep 999</command> timed out and has been killed.",
        "refused": "Command not executed. The user rejected your command with the following message: no",
    }[question]
    call = f"THOUGHT: so.\n\n```mswea_bash_command\n{QUESTIONS[question][0]}\n```"
    said = (("system", "```mswea_bash_command\nx\n```"), ("user", "Fix it."), ("assistant", call), ("user", result))
    messages = [{"role": role, "content": text} for role, text in said]
    return {"info": {}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}


def sts(question: str) -> list[dict[str, Any]]:
    call = {"id": "c", "function": {"name": "bash", "arguments": json.dumps({"command": TEST})}}
    said = ({"role": "user", "content": "go"}, {"role": "assistant", "content": "", "toolCalls": [call]},
            {"role": "tool", "content": "1 failed", "toolCallId": "c"})  # fmt: skip
    messages: list[dict[str, Any]] = [
        {"id": str(n), "parent": str(n - 1) if n else None, **message} for n, message in enumerate(said)
    ]
    return [
        {"type": "session", "harness": "acme.app", "id": "c-1"},
        *({"type": "message", "message": m} for m in messages),
    ]


def claude_stream(question: str) -> list[dict[str, Any]]:
    head = {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "model": "m"}
    answers = [{k: r[k] for k in ("type", "message")} for r in claude(question)[1:]]
    return [head, *({**r, "session_id": "s", "parent_tool_use_id": None} for r in answers)]


def swival(question: str) -> list[dict[str, Any]]:
    records = claude(question)
    result = records[2]["message"]["content"][0]
    result["content"] = "error: command not allowed: pytest" if question == "error" else result["content"]
    records[1]["message"]["content"][0]["name"] = "run_command"
    return [{**record, "harness": "swival"} for record in records]


def cursor(question: str) -> list[dict[str, Any]]:
    text, failed = {"worked": ("3 passed", False), "error": ("No such file or directory", True)}[question]
    use = {"type": "tool_use", "name": "Shell", "input": {"command": TEST}}
    if question == "error":
        use = {"type": "tool_use", "name": "Read", "input": {"path": "gone.py"}}
    said = [("user", {"type": "text", "text": "<user_query>\ngo\n</user_query>"}), ("assistant", use),
            ("user", {"type": "tool_result", "content": text, "is_error": failed})]  # fmt: skip
    return [{"role": role, "message": {"content": [block]}} for role, block in said]


def atif(question: str) -> dict[str, Any]:
    text = {
        "worked": "3 passed",
        "error": "Error: file not found",
        "exit": "1 failed\n[The command completed with exit code 1.]",
        "no_hit": "[The command completed with exit code 1.]",
    }[question]
    return atif_steps.document(
        atif_steps.user("go"),
        atif_steps.agent(
            tool_calls=[atif_steps.call("c", "execute_bash", command=QUESTIONS[question][0])],
            observation=atif_steps.seen(("c", text)),
        ),
    )


def inspect(question: str) -> dict[str, Any]:
    text, kind = {
        "worked": ("3 passed", None), "error": ("", "is_a_directory"), "timeout": ("", "timeout"),
        "refused": ("", "approval"), "cancelled": ("", "cancelled"),
    }[question]  # fmt: skip
    command = {"cmd": QUESTIONS[question][0]}
    failed = {"error": {"type": kind, "message": "it ended so"}} if kind else {}
    said = inspect_logs.say("", "m", tool_calls=[inspect_logs.call("c", "bash", **command)])
    events = [
        inspect_logs.model(1, [inspect_logs.user("go")], said),
        inspect_logs.tool(2, "c", "bash", text, arguments=command, **failed),
    ]
    return {**inspect_logs.header(), "samples": [inspect_logs.sample(events=events)]}


def otel(question: str) -> dict[str, Any]:
    kind = {"worked": None, "error": "ValueError", "timeout": "timeout"}[question]
    facts = {"operation.name": "execute_tool", "tool.name": "bash", "tool.call.id": "c", "tool.call.result": "3 passed"}
    status = {"status": {"code": 2, "message": "timed out" if kind == "timeout" else "it failed"}} if kind else {}
    said = otel_spans.text("assistant", "", otel_spans.call("c", "bash", command=QUESTIONS[question][0]))
    asked = [otel_spans.text("user", "go")]
    return otel_spans.export(
        otel_spans.chat("m1", 1, asked, [said]),
        otel_spans.span("t1", 3, "m1", facts={**facts, **({"error.type": kind} if kind else {})}, **status),
    )


def swe_agent(question: str) -> dict[str, Any]:
    action, observation = {
        "worked": (TEST, "3 passed"),
        "error": ("open gone.py", "File gone.py not found"),
        "exit": (TEST, "1 failed, 2 passed in 0.1s"),
        "no_hit": (SEARCH, ""),
        "timeout": (SLEEP, "EXECUTION TIMED OUT BECAUSE THE COMMAND WAS RUNNING FOR MORE THAN 25 SECONDS"),
    }[question]
    step = {"action": action, "observation": observation, "response": "so", "thought": "so", "state": "{}"}
    return {"environment": "swe_main", "trajectory": [step], "history": [], "info": {"exit_status": "submitted"}}


def opentraces(question: str) -> dict[str, Any]:
    text, error = {
        "worked": ("3 passed", None), "error": ("no such file", "not_found"),
        "exit": ("Exit code 1\n1 failed", "failed"), "no_hit": ("Exit code 1", "failed"),
        "refused": ("no", "rejected"), "cancelled": ("stopped", "cancelled"),
    }[question]  # fmt: skip
    call = {"tool_call_id": "c", "tool_name": "Bash", "input": {"command": QUESTIONS[question][0]}}
    steps = [
        {"step_index": 0, "role": "user", "content": "go"},
        {"step_index": 1, "role": "agent", "content": "", "tool_calls": [call],
         "observations": [{"source_call_id": "c", "content": text, "error": error}]},
    ]  # fmt: skip
    head = {"schema_version": "0.9.0", "trace_id": "t", "session_id": "s", "agent": {"name": "claude-code"}}
    return {**head, "timestamp_start": AT, "steps": steps}


def grok(question: str) -> list[dict[str, Any]]:
    text, status, output = {
        "worked": ("3 passed", "completed", {"exit_code": 0}),
        "error": ("Failed to parse arguments", "failed", {}),
        "exit": ("1 failed", "completed", {"exit_code": 1}),
        "no_hit": ("", "completed", {"exit_code": 1}),
        "timeout": ("", "completed", {"timed_out": True, "exit_code": 124}),
        "cancelled": ("", "cancelled", {}),
    }[question]
    tool = {"x.ai/tool": {"name": "run_terminal_command"}}
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    asked = {"sessionUpdate": "tool_call", "rawInput": {"command": QUESTIONS[question][0]}, "_meta": tool}
    ended = {"sessionUpdate": "tool_call_update", "status": status, "content": content}
    updates: list[dict[str, Any]] = [asked, {**ended, "rawOutput": {"type": "Bash", **output}}]
    return [{"params": {"sessionId": "s", "update": {"toolCallId": "c", **update}}} for update in updates]


def cline(question: str) -> dict[str, Any]:
    """A session of its CLI; the tasks of the extension are asked in test_cline.py."""
    result: Any = {
        "worked": [{"query": TEST, "result": "3 passed", "success": True}],
        "error": {"error": "Tool call run_commands was rejected before execution: InvalidToolInputError"},
        "exit": [{"query": TEST, "result": "[Command exited with code 1]\n1 failed", "success": False}],
        "no_hit": [{"query": SEARCH, "result": "[Command exited with code 1]\n", "success": False}],
        "timeout": [{"query": SLEEP, "result": "", "error": "Command timed out after 30000ms", "success": False}],
    }[question]
    use = {"type": "tool_use", "id": "c", "name": "run_commands", "input": {"commands": [QUESTIONS[question][0]]}}
    back = {"type": "tool_result", "tool_use_id": "c", "content": result, "is_error": question == "error"}
    messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]
    return {"version": 1, "agent": "lead", "sessionId": "s", "messages": messages}


def kimi_code(question: str) -> list[dict[str, Any]]:
    result: dict[str, Any] = {
        "worked": {"output": "3 passed"},
        "error": {"output": 'Tool "Bash" not found', "isError": True},
        "exit": {"output": "1 failed\nCommand failed with exit code: 1.", "isError": True},
        "no_hit": {"output": "Process exited with code 1\nCommand failed with exit code: 1.", "isError": True},
        "timeout": {"output": "Command killed by timeout (60s)", "isError": True},
        "refused": {"output": "The tool call was rejected.", "isError": True},
        "cancelled": {"output": "Interrupted by user", "isError": True},
    }[question]
    call = {"type": "tool.call", "toolCallId": "c", "name": "Bash", "args": {"command": QUESTIONS[question][0]}}
    no = {"type": "permission.record_approval_result", "toolCallId": "c", "result": {"decision": "rejected"}}
    back = {"type": "tool.result", "toolCallId": "c", "result": result}
    return [
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1},
        {"type": "context.append_loop_event", "event": call, "time": 1_780_000_000_000},
        *([{**no, "time": 1_780_000_001_000}] if question == "refused" else []),
        {"type": "context.append_loop_event", "event": back, "time": 1_780_000_002_000},
    ]


def kimi_cli(question: str) -> list[dict[str, Any]]:
    output, message = {
        "worked": ("3 passed", "Command executed successfully."),
        "error": ("", "Tool `Shell` not found"),
        "exit": ("1 failed", "Command failed with exit code: 1."),
        "no_hit": ("", "Command failed with exit code: 1."),
        "timeout": ("", "Command killed by timeout (60s)"),
        "refused": ("", "The tool call is rejected by the user."),
    }[question]
    function = {"name": "Shell", "arguments": json.dumps({"command": QUESTIONS[question][0]})}
    value = {"is_error": question != "worked", "output": output, "message": message, "display": []}
    leave = [
        ("ApprovalRequest", {"id": "r", "tool_call_id": "c"}),
        ("ApprovalResponse", {"request_id": "r", "response": "reject"}),
    ]
    said = [
        ("ToolCall", {"type": "function", "id": "c", "function": function}),
        *(leave if question == "refused" else []),
        ("ToolResult", {"tool_call_id": "c", "return_value": value}),
    ]
    return [{"timestamp": 1_780_000_000.0, "message": {"type": kind, "payload": payload}} for kind, payload in said]


def zed(question: str) -> dict[str, Any]:
    command = QUESTIONS[question][0]
    text, failed = {
        "worked": ("3 passed", False),
        "error": ("The shell could not be started", True),
        "exit": (f'Command "{command}" failed with exit code 1.\n\n```\n1 failed\n```', False),
        "no_hit": (f'Command "{command}" failed with exit code 1.', False),
        "timeout": (f'Command "{command}" timed out. No output was captured.', False),
        "refused": ("Permission to run tool denied by user", True),
        "cancelled": ("Tool canceled by user", True),
    }[question]
    use = {"ToolUse": {"id": "c", "name": "terminal", "input": {"command": command}}}
    result = {"tool_use_id": "c", "is_error": failed, "content": {"Text": text}}
    asked = {"User": {"id": "1", "content": [{"Text": "go"}]}}
    messages = [asked, {"Agent": {"content": [use], "tool_results": {"c": result}}}]
    return {"zedThread": {"id": "s"}, "version": "0.3.0", "messages": messages}


def windsurf(question: str) -> list[dict[str, Any]]:
    told: dict[str, tuple[str, dict[str, Any]]] = {
        "worked": ("done", {"exit_code": 0, "output": "3 passed"}),
        "error": ("error", {}),
        "exit": ("done", {"exit_code": 1, "output": "1 failed"}),
        "no_hit": ("done", {"exit_code": 1}),
        "refused": ("done", {"user_rejected": True}),
    }
    status, ended = told[question]
    command = {"command": QUESTIONS[question][0], "cwd": "/w", **ended}
    return [
        {"type": "user_input", "status": "done", "user_input": {"user_response": "go"}},
        {"type": "run_command", "status": status, "run_command": command},
    ]


WRITES = {
    "grok-build": grok, "zed": zed, "windsurf": windsurf,
    "claude-code": claude, "codex": codex, "codex-exec": codex_exec, "copilot-cli": copilot, "factory-droid": droid,
    "gemini-cli": gemini, "kiro": kiro, "mini-swe-agent": mini, "opencode": opencode, "pi": pi, "sharegpt": sharegpt,
    "sts": sts, "claude-stream": claude_stream, "swival": swival, "cursor-agent": cursor, "atif": atif,
    "inspect-json": inspect, "otel-genai": otel, "swe-agent": swe_agent, "opentraces": opentraces,
    "qwen-code": qwen, "continue": continue_, "vscode-copilot": vscode, "amp": amp, "goose": goose, "crush": crush,
    "cline": cline, "kimi-code": kimi_code, "kimi-cli": kimi_cli,
}  # fmt: skip
CANNOT_SAY = {
    **{("cline", question): "its CLI asks for no leave, and stops as a whole" for question in ("refused", "cancelled")},
    ("kimi-cli", "cancelled"): "no sample of one is known",
    ("grok-build", "refused"): "no sample of one is known",
    **{("sts", question): "nothing is written of how a call ended" for question in QUESTIONS},
    **{("windsurf", question): "no sample of one is known" for question in ("timeout", "cancelled")},
    ("codex-exec", "cancelled"): "an item that was never finished has no result",
    ("copilot-cli", "timeout"): "a command that takes long is left running, and looked at again",
    ("factory-droid", "refused"): "no sample of one is known",
    ("factory-droid", "cancelled"): "no sample of one is known",
    ("crush", "timeout"): "a command that takes long goes on in the background",
    ("kiro", "timeout"): "its shell has no limit",
    ("mini-swe-agent", "error"): "all it does is a command, and that has an exit code or was stopped",
    ("mini-swe-agent", "cancelled"): "a command that was not run has no result of its own in this version",
    ("pi", "refused"): "its shell asks for no leave",
    **{
        ("cursor-agent", question): "its transcript has no exit code, and ends where the person stops it"
        for question in ("exit", "no_hit", "timeout", "refused", "cancelled")
    },
    **{
        ("atif", question): "the agents that write it run alone; a time-out is in each one's own words"
        for question in ("timeout", "refused", "cancelled")
    },
    (
        "continue",
        "no_hit",
    ): "a command that failed and wrote nothing to stderr is stored as done",
    **{
        ("inspect-json", question): "a tool's result is its output, without an exit code"
        for question in ("exit", "no_hit")
    },
    **{
        ("otel-genai", question): "a span has an error or none"
        for question in ("exit", "no_hit", "refused", "cancelled")
    },
    **{("swe-agent", question): "nobody is there to refuse or cancel" for question in ("refused", "cancelled")},
    ("vscode-copilot", "timeout"): "a command that takes long is left running, and looked at again",
    ("opentraces", "timeout"): "an observation has an error or none",
    ("sharegpt", "no_hit"): "its answer is a JSON text around the output",
    ("sharegpt", "refused"): "nobody is there to refuse",
    ("sharegpt", "cancelled"): "nobody is there to cancel",
}
ELSEWHERE = {
    "entire": "holds the logs of other agents, and is read as they are",
    "inspect": "the same as inspect-json, packed",
    "openhands": "a file an event: tests/test_openhands.py asks the same",
    "mistral-vibe": "a chunk of history is a list: tests/formats/test_mistral_vibe.py asks the same",
    "lab-repository": "calls of our own experiments, which are asked in tests/lab",
    "trail": "a span's error is the call's; the samples hold both",
    **dict.fromkeys(
        ("harbor", "harbor-log", "lab-retry", "outcome-table", "patch", "subq-eval", "subq-eval-log", "swe-bench",
         "swe-bench-text", "terminal-bench"), "has no tool calls",
    ),
}  # fmt: skip
ASKED = [(name, q) for name in WRITES for q in QUESTIONS if (name, q) not in CANNOT_SAY]


def calls_of(name: str, document: Any) -> list[ToolCall]:
    (session,) = (
        by_name(name)
        .read([reading.given(reading.lines(*(document if isinstance(document, list) else [document])), name)])
        .sessions
    )
    return session.tool_calls


def test_every_format_is_asked_or_says_why_not() -> None:
    assert set(formats()) == {*WRITES, *ELSEWHERE}
    assert not {*WRITES} & {*ELSEWHERE}


@pytest.mark.parametrize(("name", "question"), ASKED, ids=str)
def test_every_format_means_the_same(name: str, question: str) -> None:
    _, status, outcome = QUESTIONS[question]
    (call,) = calls_of(name, WRITES[name](question))
    assert (call.status, call.outcome) == (status, outcome)


MEANS = {
    "done": "ok", "nothing_found": "ok", "exit_nonzero": "error", "error_result": "error", "timed_out": "error",
    "refused": "rejected", "cancelled": "cancelled",
}  # fmt: skip


def contradicting(folder: Path) -> list[Any]:
    asked = "SELECT outcome, status, count(*) FROM tool_calls WHERE outcome IS NOT NULL GROUP BY ALL ORDER BY ALL"
    counted = Store(folder).sql(asked).fetchall()
    assert len(counted) > 3
    return [row for row in counted if row[1] != MEANS[row[0]]]


def test_status_and_outcome_never_contradict_each_other(demo_folder: Path) -> None:
    assert contradicting(demo_folder / "store") == []


@pytest.mark.corpus
@pytest.mark.slow
def test_status_and_outcome_agree_in_real_traces(corpus_folder: Path) -> None:
    """Also where one is changed later, as of a plan whose refusal was an approval."""
    assert contradicting(corpus_folder / "store") == []


def test_a_format_that_cannot_say_leaves_it_out_and_so_does_the_rate() -> None:
    (session,) = by_name("sts").read([reading.given(reading.lines(*sts("exit")), "sts")]).sessions
    assert [(c.status, c.outcome) for c in session.tool_calls] == [("unknown", None)]
    values = {r.signal.path: r.value for r in measure(SessionView(session))}
    for name in ("user.tool_error_rate", "user.tool_errors_by_type[]", "corpus.error_recovery_rate"):
        value = values[name]
        assert isinstance(value, Absent), name
        assert value.reason == "missing_field", name


@pytest.mark.parametrize(
    ("command", "code", "nothing"),
    [
        ("rg x", 1, True),
        ("rg x", 2, False),
        ("cd a && git -C . grep -n x", 1, True),
        ("git log", 1, False),
        ("sudo timeout 5 grep -rq x .", 1, True),
        ("cat a | grep x", 1, True),
        ("grep x a | head", 1, False),
        ("find . | xargs grep x", 123, True),
        ("grep x a", 123, False),
        ("! grep x a", 1, False),
        ("bash -lc 'rg x'", 1, True),
        ("echo $(grep x a)", 1, False),
        ("which ruff", 1, True),
        ("test -f a", 1, False),
        ("diff a b", 1, False),
        ("grep x a; pytest", 1, False),
    ],
)
def test_which_command_lines_end_in_a_search(command: str, code: int, nothing: bool) -> None:
    assert found_nothing(command, code) is nothing


@pytest.mark.parametrize(
    ("name", "command", "outcome"),
    [
        ("codex", "grep -q x a", "done"),
        ("codex", "find . -name x -delete", "done"),
        ("codex", "rg x > hits", "done"),
        ("codex", "rg x || true", "done"),
        ("codex", "find . -name x", "nothing_found"),
    ],
)
def test_silence_is_no_hit_only_where_hits_are_printed(name: str, command: str, outcome: str) -> None:
    records = codex("worked")
    records[1]["payload"]["arguments"] = json.dumps({"cmd": command})
    records[2]["payload"]["output"] = records[2]["payload"]["output"].replace("3 passed", "")
    (call,) = calls_of(name, records)
    assert (call.status, call.outcome) == ("ok", outcome)


@pytest.mark.parametrize(
    ("command", "text", "outcome"),
    [
        ("grep -c x a", "0", "nothing_found"),
        ("cd src && rg --count x", "a.py:0\nb c.py:0", "nothing_found"),
        ("cd src && grep -nc x a", "0", "nothing_found"),
        ("pytest && grep -c x a", "1 failed", "exit_nonzero"),
        ("cd src && grep -n x a", "0", "exit_nonzero"),  # not a count: somebody else's output
        ("echo == a; grep -n x a", "== a", "nothing_found"),
        ("cat a\ngrep 'x;y' b", "text", "nothing_found"),
        ("make; sudo grep -c x a", "built", "nothing_found"),
        ("echo == a; cd gone && grep -n x a", "== a\nno such folder", "exit_nonzero"),
        ("set -e; pytest; grep x a", "1 failed", "exit_nonzero"),
        ("set -euo pipefail\npytest\ngrep x a", "1 failed", "exit_nonzero"),
        ("pytest; cat a | grep x", "1 failed", "exit_nonzero"),  # with pipefail it may be the first's
        ("cd a && (pytest; grep x b)", "no such folder", "exit_nonzero"),
        ("pytest; find . -name x", "1 failed", "exit_nonzero"),  # what 1 means of it nobody defines
        ("bash -lc 'echo a; rg x'", "a", "nothing_found"),
    ],
)
def test_a_search_without_a_hit_beside_what_else_was_printed(command: str, text: str, outcome: str) -> None:
    records = codex("exit")
    records[1]["payload"]["arguments"] = json.dumps({"cmd": command})
    records[2]["payload"]["output"] = records[2]["payload"]["output"].replace("1 failed", text)
    (call,) = calls_of("codex", records)
    assert call.outcome == outcome


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Error: Could not find oldString in the file.", "edit_mismatch"),
        ("Error: You must read file /w/a before overwriting it.", "not_read_first"),
        ("Error: File /w/a not found", "not_found"),
        ("ENOENT: no such file or directory", "not_found"),
        ("EACCES: permission denied", "permission"),
        ("connect ECONNREFUSED", "network"),
        ("whatever", "other"),
    ],
)
def test_errors_in_the_words_of_one_agent_have_the_classes_of_all(text: str, error: str) -> None:
    document = opencode("refused")
    part = document["messages"][0]["parts"][0]
    part["tool"], part["state"]["error"], part["state"]["input"] = "edit", text, {"filePath": "/w/a"}
    (call,) = calls_of("opencode", document)
    assert (call.status, call.outcome, call.error_class) == ("error", "error_result", error)


LONG = "x" * 9_000

CODES: list[tuple[str, int | None]] = [
    ("Exit code 1\nboom", 1),
    ("Error: Exit code 127\nsh: x: not found", 127),
    ("Exit code: 2", 2),
    ("out\n\nCommand exited with code 3", 3),
    ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nok", 0),
    ("text\n<command completed with exit code 4>", 4),
    ("FAIL\nexit status 5", 5),
    (f"{LONG}\nCommand exited with code 6", 6),
    (f"Exit code 7\n{LONG}", 7),
    ("Exit code -1", -1),
    ("the exit code 1 was expected", None),
    ("", None),
    ("<tool_use_error>File does not exist.</tool_use_error>", None),
]


@pytest.mark.parametrize(("text", "code"), CODES)
def test_an_exit_code_is_read_where_the_agent_states_it(text: str, code: int | None) -> None:
    assert exit_code(text) == code


CLASSES: list[tuple[str, ToolClass, ShellKind | None, str]] = [
    ("<tool_use_error>Sibling tool call errored</tool_use_error>", "shell", "run", "sibling_cancelled"),
    (
        "<tool_use_error>Cancelled: parallel tool call Bash(ls) errored</tool_use_error>",
        "read",
        None,
        "sibling_cancelled",
    ),
    ("<tool_use_error>File has not been read yet. Read it first</tool_use_error>", "edit", None, "not_read_first"),
    ("<tool_use_error>String to replace not found in file.</tool_use_error>", "edit", None, "edit_mismatch"),
    ("<tool_use_error>Found 2 matches of the string to replace, but", "edit", None, "edit_mismatch"),
    ("<tool_use_error>No changes to make: old_string and", "edit", None, "edit_mismatch"),
    ("File has been modified since read, either by the user", "edit", None, "edit_mismatch"),
    ("File has been unexpectedly modified. Read it again", "edit", None, "edit_mismatch"),
    ("<tool_use_error>File does not exist.</tool_use_error>", "read", None, "not_found"),
    ("ENOENT: no such file or directory, open 'x'", "read", None, "not_found"),
    ("Request failed with status code 404", "web", None, "not_found"),
    ("404", "web", None, "not_found"),
    ('{"status": 404}', "mcp", None, "not_found"),
    ("server responded with a status of 404 ()", "web", None, "not_found"),
    ("HTTP/1.1 429", "web", None, "rate_limit"),
    ('{"error":{"code":429,"message":"x"}}', "mcp", None, "rate_limit"),
    ("at main.js:404:12", "mcp", None, "other"),
    ("wrote 404 bytes, then 429", "mcp", None, "other"),
    ("404 lines, 429 words", "mcp", None, "other"),
    ("EISDIR: illegal operation on a directory, read", "read", None, "wrong_kind_of_path"),
    ("InputValidationError: Read failed", "read", None, "invalid_arguments"),
    ("EACCES: permission denied, open 'x'", "edit", None, "permission"),
    ("Request timed out", "web", None, "timeout"),
    ("connect ECONNREFUSED 127.0.0.1:80", "mcp", None, "network"),
    ("", "mcp", None, "other"),
    ("Exit code 1\n--- FAIL: TestA: no such file or directory", "test", "test", "test_failed"),
    ("Exit code 1\nFAILED a.py - timeout", "test", "test", "test_failed"),
    ("ok\n\nCommand exited with code 1", "test", "test", "test_failed"),
    (f"{LONG}\n\nCommand exited with code 1", "test", "test", "test_failed"),
    ("Exit code 1\n(eval):cd:1: no such file or directory: sub", "test", "test", "not_found"),
    ("Exit code 127\nsh: 1: vitest: not found", "test", "test", "not_found"),
    ("Exit code 127\n/bin/bash: line 1: tsc: command not found", "shell", "build", "not_found"),
    ("Exit code 143\nCommand timed out after 2m 0.0s", "test", "test", "timeout"),
    ("Exit code 2\na.ts(1,1): error TS1", "shell", "build", "lint_failed"),
    ("Exit code 2\nls: cannot access 'x': No such file or directory", "search", "search", "not_found"),
    ("Exit code 128\nfatal: pathspec 'x' did not match any files", "shell", "vcs", "not_found"),
    ("Exit code 1\ngh: Not Found (HTTP 404)", "shell", "vcs", "not_found"),
    ("Exit code 1\nerror: patch failed: a:1\nerror: a: patch does not apply", "shell", "vcs", "edit_mismatch"),
    ("Exit code 1\ntimeout = 30 # line 404; the file does not exist yet", "shell", "run", "exit_nonzero"),
    ("Exit code 1\nbash: ./x: Permission denied", "shell", "run", "permission"),
    ("Exit code 6\ncurl: (6) Could not resolve host: x", "shell", "run", "network"),
    ("Exit code 1", "search", "search", "exit_nonzero"),
    ("Error: Invalid arguments for tool run: `path` is required", "read", None, "invalid_arguments"),
    ("params must have required property 'file_path'", "read", None, "invalid_arguments"),
    ('Validation failed for tool "read":\n  - path: must be string', "read", None, "invalid_arguments"),
    ("failed to parse function arguments: missing field `command`", "shell", None, "invalid_arguments"),
    ("Invalid `view_range`: [900, 1000]. Its first element", "read", None, "invalid_arguments"),
    ("The `view_range` parameter is not allowed when `path` points to a directory.", "read", None, "invalid_arguments"),
    ('[{"code": "invalid_type", "expected": "string"}]', "mcp", None, "invalid_arguments"),
    ("ENOTDIR: not a directory, scandir 'a.py'", "search", None, "wrong_kind_of_path"),
    ("Path is a directory, not a file: /w", "read", None, "wrong_kind_of_path"),
    ("File content (11766 tokens) exceeds maximum allowed tokens (10000).", "read", None, "too_large"),
    ("PreToolUse:Bash hook error: [guard.sh]: no pushes to main", "shell", None, "blocked"),
    ("<tool_use_error>Blocked: sleep 30 followed by: gh pr checks", "shell", None, "blocked"),
    ("The tool call was denied by policy", "shell", None, "blocked"),
    ("429 Too Many Requests", "web", None, "rate_limit"),
    ("API rate limit exceeded for user", "mcp", None, "rate_limit"),
    ("Unknown skill: commit", "task", None, "not_found"),
    ("GitHub API error 403: Resource protected by organization SAML", "mcp", None, "permission"),
    ("ENOSPC: no space left on device, write", "edit", None, "disk_full"),
    ("TypeError: x is not a function", "mcp", None, "exception"),
    ("fetch failed", "web", None, "network"),
    ("Exit code 1\nCONFLICT (content): Merge conflict in a.go", "shell", "vcs", "merge_conflict"),
    ("Exit code 1\nerror: could not apply 669232e1... x", "shell", "vcs", "merge_conflict"),
    ("Exit code 1\n ! [rejected] main -> main (fetch first)", "shell", "vcs", "merge_conflict"),
    ("Exit code 1\nTraceback (most recent call last):\nValueError: x", "shell", "run", "exception"),
    ("Exit code 1\nModuleNotFoundError: No module named 'yaml'", "shell", "run", "not_found"),
    ("Exit code 101\nerror[E0308]: mismatched types", "shell", "run", "compile_error"),
    ('Exit code 1\n  File "a.py", line 3\nSyntaxError: invalid syntax', "shell", "run", "compile_error"),
    ("Exit code 1\n3 failed, 12 passed in 0.4s", "shell", "vcs", "test_failed"),
    ("Exit code 1\n0 failed, 12 passed", "shell", "vcs", "exit_nonzero"),
    ("Exit code 1\nunknown flag: --stat\n\nUsage:  gh pr diff", "shell", "vcs", "invalid_arguments"),
    ("Exit code 1\nHTTP 401: Bad credentials", "shell", "vcs", "permission"),
    ("Exit code 1\nerror: API rate limit exceeded", "shell", "vcs", "rate_limit"),
    ("Exit code 128\nfatal: not a git repository", "shell", "vcs", "not_found"),
    ("Exit code 1\nNode.js v22.22.3", "shell", "run", "exception"),
    ("Exit code 1\nthe blocked users table has an invalid state", "shell", "run", "exit_nonzero"),
    ("Exit code 1\n# rate limits are documented in the docs", "shell", "run", "exit_nonzero"),
]


@pytest.mark.parametrize(("text", "class_", "kind", "expected"), CLASSES)
def test_an_error_has_the_class_its_words_say(
    text: str, class_: ToolClass, kind: ShellKind | None, expected: str
) -> None:
    assert error_class(text, class_, kind) == expected


@pytest.mark.parametrize(("code", "expected"), [(126, "permission"), (127, "not_found"), (3, "exit_nonzero")])
def test_an_exit_code_that_posix_gives_a_meaning_says_the_class(code: int, expected: str) -> None:
    assert error_class("", "shell", "run", code) == expected


@pytest.mark.parametrize(("class_", "expected"), [("edit", "blocked"), ("read", "other")])
def test_an_extension_that_blocks_in_its_own_words_is_known_by_the_tool(class_: ToolClass, expected: str) -> None:
    words = "Adds a behaviour without evidence of a test that fails first."
    call = ToolCall(seq=0, turn=0, step=None, thread="main", call_id="a", name="x", class_=class_, arguments="{}")
    assert ending(call, words, "error", None, None, Profile(blocks_in_any_words=("edit",))).error == expected
    assert ending(call, words, "error", None, None, Profile()).error == "other"


PATTERNS = [
    *TOOL_SAYS.values(),
    *COMMAND_SAYS.values(),
    *(pattern for profile in profiles() for _, patterns in profile.failures for pattern in patterns),
]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("timed out", ["timed out"]),
        ("timed out|deadline", ["deadline", "timed out"]),
        ("files? are", ["file"]),
        (r"\bno such (?:file|tool)\b", ["no such "]),
        (r"\d+ (?:failed|failing)", ["failed", "failing"]),
        ("(?:old_)?string", ["string"]),
        ("(?:ab|cd)+", ["ab", "cd"]),
        ("edits{0,3} done", [" done"]),
        (r"\[rejected\]", ["[rejected]"]),
        (r"[\[\]x]{2}y\.z", ["y.z"]),
        ('{"status":', ['{"status":']),
        ("a(?=bcd)", ["a"]),
        ("error|errors found", ["error"]),
        (r"error|\d+", []),
        ("x*", []),
        ("", []),
    ],
)
def test_a_match_holds_one_of_these_words(pattern: str, words: list[str]) -> None:
    assert sorted(words_of(pattern)) == words


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_of_an_error_names_its_words(pattern: str) -> None:
    assert all(len(word) >= 3 for word in words_of(pattern)) and words_of(pattern)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(PATTERNS).flatmap(
        lambda p: st.tuples(st.just(p), st.from_regex(p, alphabet=st.characters(max_codepoint=127)))
    )
)
def test_what_a_pattern_matches_is_found_by_its_words(case: tuple[str, str]) -> None:
    pattern, text = case
    assert Pattern(pattern, re.MULTILINE).is_in(text)
