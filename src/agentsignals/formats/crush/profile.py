"""What is known of Crush: where it lists the projects whose databases hold its sessions, and its tools."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, EDIT, FIND, MCP, PLAN, READ, SEARCH, SHELL, TASK, WEB, WRITE

PROFILE = Profile(
    agent="crush",
    instructions_perhaps=(  # by version: https://github.com/charmbracelet/crush/blob/main/internal/config/config.go
        "CRUSH.md",
        "CRUSH.local.md",
        "AGENTS.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "GEMINI.md",
        ".cursorrules",
        ".cursor/rules/**/*",
        ".github/copilot-instructions.md",
    ),
    homes=tuple(
        f"{data}/projects.json:data_dir/crush.db"
        for data in ("~/.local/share/crush", "$XDG_DATA_HOME/crush", "$LOCALAPPDATA/crush", "$CRUSH_GLOBAL_DATA")
    ),
    tools=named(
        (READ, "view"),
        (SEARCH, "grep sourcegraph lsp_references references"),
        (FIND, "glob ls"),
        (EDIT, "edit multiedit"),
        (WRITE, "write"),
        (structs.replace(SHELL, folder=("working_dir",)), "bash"),
        (READ.to("poll"), "job_output"),
        (PLAN, "todos"),
        (TASK, "agent agentic_fetch"),
        (WEB, "fetch web_fetch web_search download"),
        (ASIDE, "diagnostics lsp_diagnostics lsp_restart job_kill"),
    ),
    tools_like={"mcp_*": MCP},
    frame=(r"<cwd>.*</cwd>", r"exit status -?\d+", "no output"),
    nothing_found=("No files found",),
    stopped=(("cancelled", ("user cancelled assistant tool calling", "Command was aborted before completion")),),
)
