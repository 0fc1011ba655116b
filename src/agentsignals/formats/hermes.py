"""Hermes' tools, which occur in data sets of other formats."""

from __future__ import annotations

from agentsignals.formats.profile import (
    ASIDE,
    ASK,
    EDIT,
    NO_SHELL,
    PLAN,
    READ,
    SEARCH,
    SHELL,
    SKILL,
    TASK,
    WEB,
    WRITE,
    Profile,
    named,
)

PROFILE = Profile(
    agent="hermes",
    tools=named(
        (SHELL, "terminal"),
        (NO_SHELL, "process execute_code"),
        (READ, "read_file"),
        (SEARCH, "search_files session_search"),
        (EDIT, "patch"),
        (WRITE, "write_file"),
        (WEB, "web_search web_extract web_crawl"),
        (PLAN, "todo"),
        (TASK, "delegate_task mixture_of_agents skill_manage skills_list"),
        (SKILL, "skill_view"),
        (ASK, "clarify"),
        (ASIDE, "memory vision_analyze image_generate send_message cronjob"),
    ),
    tools_like={"browser_*": WEB},
)
