"""What is known of SWE-agent: its tools, by the name under which the tool bundles install them."""

from __future__ import annotations

from msgspec import structs

from agentsignals.formats.profile import Profile, named
from agentsignals.formats.tools import ASIDE, EDIT, EDIT_ROLES, FIND, READ, SEARCH, SHELL

_EDIT = structs.replace(
    EDIT,
    roles=structs.replace(
        EDIT_ROLES, replace=(*EDIT_ROLES.replace, ("search", "replace")), part=("text", "replacement_text")
    ),
)
PROFILE = Profile(
    agent="swe-agent",
    tools=named(
        (SHELL, "bash"),
        (_EDIT, "edit insert str_replace_editor"),
        (_EDIT.to("write_file"), "create"),
        (READ, "open goto scroll_up scroll_down filemap view_image decompile disassemble"),
        (SEARCH, "search_dir search_file"),
        (FIND, "find_file"),
        (ASIDE, "submit exit_forfeit skip set_cursors connect_start connect_sendline connect_exec connect_stop"),
        (ASIDE, "debug_start debug_stop debug_exec debug_step debug_continue debug_add_breakpoint"),
    ),
)
