"""What the harnesses that write ATIF call the tools of their agents; other names are any agent's."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, NO_SHELL, PLAN, SHELL, WEB, Tool

PROFILE = Profile(
    tools=named(
        (Tool(class_="shell", command=("keystrokes", "command")), "keystrokes bash_command"),
        (SHELL, "execute_bash run_shell_command terminal"),
        (NO_SHELL, "execute_ipython_cell"),
        (PLAN, "task_tracker todo"),
        (WEB, "browser fetch browser_use"),
        (ASIDE, "think finish submit mark_task_complete task_complete"),
    ),
    frame=(
        r"\[The command completed with exit code -?\d+\.?\]",
        r"\[Command finished with exit code -?\d+\]",
        r"\[(?:Current working directory|Python interpreter): .*\]",
    ),
)
