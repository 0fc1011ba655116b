"""The scanners by name. One is switched on by a line here."""

from __future__ import annotations

from pathlib import Path

from agentsignals.errors import UsageError
from agentsignals.scanning.own_rules import OwnRules
from agentsignals.scanning.programs import PROGRAMS, Program
from agentsignals.scanning.scanner import Scanner

NAMES = (OwnRules.id, *PROGRAMS)


def scanner(name: str, config: str | None = None) -> Scanner:
    """The scanner of that name. UsageError for a name that is none, and for rules that are missing or not wanted;
    ScanError when its program is not installed.
    """
    if name not in NAMES:
        raise UsageError(f"There is no scanner {name!r}.", f"The scanners: {', '.join(NAMES)}.")
    if (name == "semgrep") != (config is not None):
        reason = "brings no rules of its own" if config is None else "takes no rules of others"
        raise UsageError(
            f"The scanner {name} {reason}.", "`--scanner semgrep --config FILE` scans with rules of yours."
        )
    if config is None:
        return OwnRules() if name == OwnRules.id else Program(name)
    path = Path(config).expanduser().absolute()
    if not path.exists():  # semgrep would take a name for one of its registry's, and ask the network
        raise UsageError(f"{config!r} is no file or folder of rules.", "Rules lie in files; a registry is never asked.")
    return Program(name, path)
