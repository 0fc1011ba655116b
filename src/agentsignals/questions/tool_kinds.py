"""The twenty kinds of tool calls of SWE-chat (Table 5), for all agents; shell calls by their first word."""

from __future__ import annotations

from collections.abc import Iterable

_FIRST_WORD = r"regexp_extract(command, '^\s*(?:[A-Za-z_]\w*=\S*\s+)*([^\s;&|()<>]+)', 1)"
_WORD = f"lower(regexp_extract({_FIRST_WORD}, '([^/]*)$', 1))"
"""First word of a command after assignments, without its folder."""

GIT = ("git", "gh")
GREP = ("grep", "rg", "egrep", "fgrep", "ag", "ack")
FILE = (
    *("cd", "ls", "cat", "find", "mkdir", "rm", "echo", "tail", "wc", "head", "sed", "nl", "awk", "cp", "mv", "touch"),
    *("pwd", "printf", "chmod", "ln", "tree", "stat", "du", "diff", "sort", "file", "test", "realpath", "basename"),
)
BUILD = (
    *("mise", "bun", "bunx", "go", "npx", "npm", "pnpm", "yarn", "node", "deno", "tsc", "cargo", "rustc", "make"),
    *("cmake", "just", "uv", "uvx", "python", "python3", "pip", "pip3", "poetry", "pytest", "ruff", "xcodebuild"),
    *("swift", "gradle", "gradlew", "mvn", "dotnet", "ruby", "bundle", "rake", "php", "composer", "gofmt"),
    *("golangci-lint", "gcc", "clang", "javac", "java"),
)
NET = ("curl", "ssh", "dig", "scp", "nc", "rsync", "wget", "ping", "nslookup", "host", "telnet")


HANDS_IN_PLAN = "ExitPlanMode"
_KIND_OF = {
    word: kind
    for kind, words in (("git/gh", GIT), ("grep", GREP), ("bash:build", BUILD), ("bash:file", FILE), ("bash:net", NET))
    for word in words
}


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_OF_COMMAND = (
    f"coalesce(list_extract([{_quoted(_KIND_OF.values())}], list_position([{_quoted(_KIND_OF)}], {_WORD})), 'bash')"
)
"""A list lookup, which extracts the word once: comparing with each kind's words took three times as long."""
KIND = f"""CASE
 WHEN class = 'mcp' THEN 'mcp'
 WHEN command IS NOT NULL THEN {_OF_COMMAND}
 WHEN purpose = 'tool_search' THEN 'ToolSearch'
 WHEN purpose = 'skill' THEN 'Skill'
 WHEN purpose = 'plan_handoff' THEN '{HANDS_IN_PLAN}'
 WHEN purpose = 'plan_mode' THEN 'EnterPlanMode'
 WHEN class = 'read' THEN 'read'
 WHEN class = 'edit' THEN CASE WHEN purpose = 'write_file' THEN 'write' ELSE 'edit' END
 WHEN class = 'search' THEN CASE WHEN purpose = 'find_files' THEN 'glob' ELSE 'grep' END
 WHEN class = 'shell' THEN 'bash' WHEN class = 'test' THEN 'bash:build'
 WHEN class = 'task' THEN 'agent' WHEN class = 'plan' THEN 'TodoWrite' WHEN class = 'ask' THEN 'AskUserQuestion'
 WHEN class = 'web' THEN 'web' ELSE 'other' END"""
"""SQL over a row of `tool_calls`. Kinds have the paper's names, some of a Claude Code tool, also for other agents'
tools.

The paper prints the commonest words of each kind of command; the others are our choice.
"""

PUBLISHED = {
    "read": 60_855, "edit": 60_205, "git/gh": 36_537, "grep": 31_238, "bash:build": 24_699, "bash:file": 21_130,
    "agent": 20_495, "bash": 16_527, "write": 9_025, "mcp": 6_001, "glob": 4_318, "bash:net": 3_541,
    "TodoWrite": 3_217, "ToolSearch": 2_804, "AskUserQuestion": 2_171, "Skill": 1_679, "web": 1_435,
    "ExitPlanMode": 1_089, "other": 511, "EnterPlanMode": 300,
}  # fmt: skip
"""Calls of each kind in SWE-chat (arXiv 2604.20779, v1, Table 5)."""
