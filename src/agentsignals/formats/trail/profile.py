"""Tools of the agents whose runs TRAIL holds."""

from __future__ import annotations

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, NO_SHELL, READ, SEARCH, SHELL, WEB

INTERPRETER = "python_interpreter"
PROFILE = Profile(
    tools=named(
        (NO_SHELL, INTERPRETER),
        (WEB, "web_search visit_webpage page_up page_down wikipedia_search"),
        (READ, "inspect_file_as_text read_file visualizer"),
        (SEARCH, "find_on_page_ctrl_f find_next"),
        (SHELL, "bash shell"),
        (ASIDE, "final_answer"),
    ),
)
