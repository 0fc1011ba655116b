"""Inspect's standard tools, and how those of the agents it bridges are called."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, ASK, EDIT, FIND, NO_SHELL, PLAN, READ, SEARCH, SHELL, TASK, WEB, WRITE

PROFILE = Profile(
    tools=named(
        (SHELL, "bash bash_session shell exec_command"),
        (NO_SHELL, "python code_execution ipython"),
        (EDIT, "text_editor str_replace_editor str_replace_based_edit_tool edit_file apply_patch"),
        (WRITE, "write_file create_file"),
        (READ, "read_file view_file"),
        (READ.to("skill"), "skill"),
        (SEARCH, "grep"),
        (FIND, "glob list_files find"),
        (WEB, "web_search web_fetch web_browser"),
        (PLAN, "update_plan todo_write"),
        (TASK, "task agent"),
        (ASK, "ask_user"),
        (ASIDE, "submit think computer memory"),
    ),
    tools_like={"web_browser_*": WEB, "transfer_to_*": TASK},
)
