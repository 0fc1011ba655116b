"""Tools of the lab's agent on a repository."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import EDIT, OTHER, READ, SEARCH, Tool

PROFILE = Profile(
    agent="lab-repository",
    tools=named(
        (SEARCH, "list search"),
        (READ, "read"),
        (EDIT, "replace write patch"),
        (Tool(class_="test"), "test"),
        (OTHER, "submit"),
    ),
)
