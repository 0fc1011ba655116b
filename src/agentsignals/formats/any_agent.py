"""Tools by name, for formats that carry any agent's sessions: whichever agent's table knows the name."""

from __future__ import annotations

from collections.abc import Callable

from agentsignals.formats.claude_code import tools
from agentsignals.formats.codex import tools as codex_tools
from agentsignals.formats.factory_droid import records
from agentsignals.formats.gemini_cli import tools as gemini_tools
from agentsignals.formats.hermes import tools as hermes_tools
from agentsignals.formats.inspect import tools as eval_tools
from agentsignals.formats.kiro import tools as kiro_tools
from agentsignals.formats.opencode import tools as opencode
from agentsignals.formats.swival import tools as swival_tools
from agentsignals.formats.tools import MCP, Tool

_BY_NAME: tuple[Callable[[str], Tool | None], ...] = (
    tools.tool,
    codex_tools.tool,
    opencode.TOOLS.get,
    gemini_tools.TOOLS.get,
    records.TOOLS.get,
    kiro_tools.TOOLS.get,
    hermes_tools.tool,
    swival_tools.tool,
)


def tool(name: str, arguments: str) -> Tool | None:
    """What a tool is. Names that differ in case only are one; a text editor is what it is asked to do."""
    found = eval_tools.tool(name, arguments)
    for known in _BY_NAME if found is None else ():
        found = known(name) or known(name.lower())
        if found is not None:
            return found
    if found is None and ("__" in name or name.startswith("mcp_")):
        return MCP
    return found


record_edit = eval_tools.record_edit
