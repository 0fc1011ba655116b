"""What is known of mini-SWE-agent: it has one tool."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import SHELL

PROFILE = Profile(agent="mini-swe-agent", tools=named((SHELL, "bash")))
