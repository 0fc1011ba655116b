"""What is known of Goose: its database and its tools, those of today and those that had its extension's name before."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, EDIT, EDIT_ROLES, FIND, MCP, PLAN, READ, SHELL, SKILL, TASK, WEB, WRITE

_EDITOR = structs.replace(EDIT, roles=structs.replace(EDIT_ROLES, part=("new_str",)))
_BEFORE_EDIT = structs.replace(EDIT, roles=structs.replace(EDIT_ROLES, replace=(("before", "after"),)))

PROFILE = Profile(
    agent="goose",
    instructions=(".goosehints",),
    instructions_perhaps=("AGENTS.md",),
    homes=(
        "~/.local/share/goose/sessions",
        "$XDG_DATA_HOME/goose/sessions",
        "$GOOSE_PATH_ROOT/data/sessions",
        "$APPDATA/Block/goose/data/sessions",
    ),
    tools=named(
        (SHELL.within("timeout_secs"), "shell developer__shell"),
        (_EDITOR, "developer__text_editor"),
        (_BEFORE_EDIT, "edit developer__edit"),
        (WRITE, "write developer__write"),
        (READ, "read developer__read read_image developer__image_processor analyze developer__analyze"),
        (FIND, "tree developer__tree"),
        (PLAN, "todo_write todo__todo_write todo__write"),
        (TASK, "delegate subagent dynamic_task__create_task subagent__execute_task"),
        (SKILL, "load_skill skills__loadSkill"),
        (WEB, "computercontroller__web_scrape"),
        (ASIDE, "todo__todo_read platform__manage_schedule platform__search_available_extensions"),
    ),
    tools_like={"*__*": MCP},
    failures=(("edit_mismatch", ("no match found for the specified text", "to identify a unique match")),),
)
