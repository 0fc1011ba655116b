"""SWE-agent trajectories of any version: one JSON document an instance, `<instance>.traj`.

Definitions: design/formats.md#swe-agent.

A run's folder holds a folder for each instance with its trajectory. An evaluation's folder names run and instance
again, which connects the two.
"""

import re

from msgspec import structs

from agentsignals.formats import Claim, Format
from agentsignals.formats.instances import canonical, root_of, run_of, stem_of
from agentsignals.formats.profile import ASIDE, EDIT, EDIT_ROLES, FIND, READ, SEARCH, SHELL, Profile, named
from agentsignals.formats.records import CUT, Head

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


_ITEM = r'\s*:\s*\[\s*\{\s*"(?:action|observation|response|thought|state|query|messages|execution_time|extra_info)"'
_STEPS_BEGIN = re.compile(rf'"trajectory"{_ITEM}')
_ATTEMPTS_BEGIN = re.compile(rf'"attempts"\s*:\s*\[\s*\{{\s*"trajectory"{_ITEM}')
_HISTORY_BEGINS = re.compile(r'"history"\s*:\s*\[\s*\{\s*"(?:role|content|agent|message_type)"')
_NAMES_AGENT = re.compile(r'"agent"\s*:\s*"')


def claims(head: Head) -> Claim | None:
    """Steps of action and observation, or a history in which every message names its agent."""
    document = head.document
    if len(head.records) > 1 or not (_has_steps(document, head) or _has_history(document, head)):
        return None
    run = run_of(head.path)
    tells = [f"/{canonical(stem_of(head.path))}"]
    return Claim(keys=[f"run:{run}"] if run is not None else [], root=root_of(head.path), tells=tells)


def _has_steps(document: dict[str, object], head: Head) -> bool:
    steps, attempts = document.get("trajectory"), document.get("attempts")
    if steps is CUT:
        return _STEPS_BEGIN.search(head.text) is not None
    if attempts is CUT:
        return _ATTEMPTS_BEGIN.search(head.text) is not None
    if isinstance(attempts, list) and attempts and isinstance(attempts[0], dict):
        steps = attempts[0].get("trajectory")
    if not isinstance(steps, list):
        return False
    if not steps:
        return isinstance(document.get("history"), list) and isinstance(document.get("info"), dict)
    return isinstance(steps[0], dict) and "action" in steps[0] and "observation" in steps[0]


def _has_history(document: dict[str, object], head: Head) -> bool:
    history = document.get("history")
    if history is None or "trajectory" in document:
        return False
    if history is CUT:
        return bool(_HISTORY_BEGINS.search(head.text) and _NAMES_AGENT.search(head.text))
    if not isinstance(history, list) or not history:
        return False
    return all(isinstance(m, dict) and "role" in m and "agent" in m and "content" in m for m in history[:3])


FORMAT = Format(
    name="swe-agent", marks=(b'"trajectory"', b'"attempts"', b'"history"'), version=7, claims=claims, profile=PROFILE
)
