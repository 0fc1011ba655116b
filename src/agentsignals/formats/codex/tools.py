"""Codex's tools in shared words, and what their results say: each generation of shell tools prints its code anew."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from agentsignals.formats import figures
from agentsignals.formats.codex.records import Part, Wrapped, text_of
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import CallStatus

_HEAD = 600
"""Result headers are a few short lines; what follows is the tool's own output and may quote anything."""
_HEADED = ("Exit code:", "Chunk ID:", "Wall time:", "Process ")
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)", re.MULTILINE)
_TOOK = re.compile(r"^Wall time: (\d+(?:\.\d+)?) seconds", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_ENDED = "\nProcess exited with code "
_FAILED = (
    "apply_patch verification failed", "exec_command failed", "execution error", "failed to ", "tool call error",
    "unable to ", "unsupported call", "write_stdin failed",
)  # fmt: skip
_REFUSED = re.compile(r"rejected by (?:the )?user|user (?:rejected|cancelled) ")


class Arguments(Struct, gc=False):
    """The arguments of a shell tool that say more than its command."""

    session_id: int | str | None = None
    command: object = None
    input: str | None = None


class Result(Struct, gc=False):
    """What a tool's output says: its text, what became of the call, the process it left running."""

    text: str
    status: CallStatus = "ok"
    exit_code: int | None = None
    running: str | None = None
    ran_s: float | None = None


NO_ARGUMENTS = Arguments()
_wrapped = msgspec.json.Decoder(Wrapped).decode
_arguments = msgspec.json.Decoder(Arguments).decode


def full_name(name: str, namespace: str) -> str:
    """The tool's name as older versions wrote it: an MCP tool with its server (`mcp__server__tool`)."""
    if not namespace.startswith("mcp__"):
        return name
    return namespace + name if name.startswith("_") or namespace.endswith("__") else f"{namespace}__{name}"


def says_more(name: str, arguments: str) -> bool:
    """Whether a shell tool's arguments may hold what `more_arguments` reads."""
    return name == "write_stdin" or "patch" in arguments


def more_arguments(arguments: str) -> Arguments:
    """Which running process a call is about, the patch it applies."""
    try:
        return _arguments(arguments)
    except UNREADABLE:
        return NO_ARGUMENTS


def patch_of(arguments: Arguments) -> str | None:
    """The patch of an `apply_patch` call made as a function tool, or as the words of a shell command."""
    words = arguments.command
    if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
        return words[1] if isinstance(words[1], str) else None
    return arguments.input


def read_result(output: str | list[Part] | Wrapped | None, failed: bool) -> Result:
    """A tool's output; `failed`: another record has said that the call failed."""
    if isinstance(output, Wrapped):
        return _unwrapped(output)
    text = output if isinstance(output, str) else text_of(output)
    if text.startswith(_HEADED):
        return _headed(text, failed)
    if text.startswith('{"output":'):
        try:
            return _unwrapped(_wrapped(text))
        except UNREADABLE:
            pass  # a tool's own JSON
    return Result(text, _status(text, failed))


def _headed(text: str, failed: bool) -> Result:
    end = text.find("\nOutput:", 0, _HEAD)
    if end < 0:
        end = _HEAD
    ended_at = text.find(_ENDED, 0, end)  # how it usually begins; a pattern takes ten times as long to get there
    code = _CODE.search(text, ended_at + 1 if ended_at > 0 else 0, end)
    took = _TOOK.search(text, 0, end)
    ran_s = float(took.group(1)) if took else None
    if code:
        return _with_code(text, int(code.group(1)), ran_s)
    running = _RUNNING.search(text, 0, end)
    if running:
        return Result(text, running=running.group(1), ran_s=ran_s)
    return Result(text, "error" if failed else "ok", ran_s=ran_s)


def _status(text: str, failed: bool) -> CallStatus:
    if failed:
        return "error"
    if text.startswith("aborted"):
        return "cancelled"
    head = text[:_HEAD]
    if "user" in head and _REFUSED.search(head):
        return "rejected"
    return "error" if text.startswith(_FAILED) else "ok"


def _unwrapped(wrapped: Wrapped) -> Result:
    text = wrapped.output if wrapped.output is not None else wrapped.content or ""
    if wrapped.metadata is not None and wrapped.metadata.exit_code is not None:
        return _with_code(text, wrapped.metadata.exit_code, figures.number(wrapped.metadata.duration_seconds))
    return Result(text, "error" if wrapped.success is False else "ok")


def _with_code(text: str, code: int, ran_s: float | None) -> Result:
    return Result(text, "ok" if code == 0 else "error", code, ran_s=ran_s)
