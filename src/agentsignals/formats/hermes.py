"""Hermes' tools, which occur in data sets of other formats."""

from __future__ import annotations

from agentsignals.formats import profile as tools
from agentsignals.formats.profile import Profile, named

PROFILE = Profile(
    agent="hermes",
    tools=named(
        (tools.SHELL, "terminal"),
        (tools.NO_SHELL, "process execute_code"),
        (tools.READ, "read_file"),
        (tools.SEARCH, "search_files session_search"),
        (tools.EDIT, "patch"),
        (tools.WRITE, "write_file"),
        (tools.WEB, "web_search web_extract web_crawl"),
        (tools.PLAN, "todo"),
        (tools.TASK, "delegate_task mixture_of_agents skill_manage skills_list"),
        (tools.SKILL, "skill_view"),
        (tools.ASK, "clarify"),
        (tools.ASIDE, "memory vision_analyze image_generate send_message cronjob"),
    ),
    tools_like={"browser_*": tools.WEB},
)
