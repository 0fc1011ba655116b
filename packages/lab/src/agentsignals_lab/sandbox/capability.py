"""Locks that this machine has: tried once, in a process that locks itself and says what happened."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from typing import Any

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import bubblewrap, filters, python_paths
from agentsignals_lab.sandbox.inside import locks as inside_locks
from agentsignals_lab.sandbox.launch import probed
from agentsignals_lab.sandbox.outcome import TIERS, Capabilities, Layer, Limits, Tier
from agentsignals_lab.sandbox.syscalls import ARCHITECTURES

LAYERS = (*inside_locks.LOCKS, "bubblewrap")

WHOLE: dict[Tier, tuple[str, ...]] = {
    "strict": ("rlimits", "capabilities", "seccomp", "bubblewrap"),
    "default": ("rlimits", "die_with_parent", "capabilities", "landlock", "seccomp"),
    "rlimits": ("rlimits",),
}
"""Layers that a tier can't be without. The others are put on where the machine has them."""

FLAG = "allow_weak=True (--allow-weak-sandbox)"


@cache
def capabilities() -> Capabilities:
    """Tries every layer, once in the life of this process (about 0.1 s)."""
    if os.name != "posix":
        return Capabilities(tuple(Layer(name, f"{sys.platform} has no such thing") for name in LAYERS))
    try:
        abi = inside_locks.landlock_abi()
    except OSError:
        abi = 0
    missing = _tried(locks(Limits(), LAYERS, abi=abi))
    layers = [Layer(name, missing.get(name, _untried(name))) for name in inside_locks.LOCKS]
    layers.append(Layer("bubblewrap", _bubblewrap_missing(abi)))
    return Capabilities(tuple(layers), abi, python_paths.executable())


def tiers() -> tuple[Tier, ...]:
    """The tiers to be had here, the strongest first; `rlimits` is none by itself, but what is left."""
    had = capabilities()
    return tuple(tier for tier in TIERS if not had.missing(WHOLE[tier]))


def choose(tier: Tier, allow_weak: bool) -> tuple[Tier, tuple[str, ...]]:
    """The tier to use, and the layers to put on. Raises SandboxError when it would be weaker than it may be."""
    had = capabilities()
    if tier not in WHOLE:
        raise SandboxError(f"There is no tier {tier!r}.", f"Tiers: {', '.join(WHOLE)}.")
    missing = had.missing(WHOLE[tier])
    if tier == "rlimits" and not allow_weak:
        raise SandboxError(
            "Resource limits alone do not keep code from anything.", f"Say {FLAG} to run it all the same."
        )
    if missing and not allow_weak:
        raise SandboxError(
            f"The {tier} sandbox needs what this machine lacks: {'; '.join(f'{k} ({v})' for k, v in missing.items())}.",
            f"A tier to be had here: {tiers()[0]}. Or say {FLAG}."
            if tiers()[:1] not in ((), ("rlimits",))
            else f"Say {FLAG}.",
        )
    if missing:
        weaker = [t for t in tiers() if TIERS.index(t) > TIERS.index(tier)]
        if not weaker:
            raise SandboxError("Not even resource limits are to be had here.", "Run it on Linux.")
        tier = weaker[0]
    elif tier == "rlimits":
        return tier, tuple(name for name in ("rlimits", "die_with_parent") if had.has(name))
    names = tuple(layer.name for layer in had.layers if not layer.missing)
    # What bubblewrap does from outside need not be tried from inside, where it would fail.
    outside = ("namespaces",) if tier == "strict" else ("bubblewrap",)
    return tier, tuple(name for name in names if name not in outside)


def locks(
    limits: Limits, layers: tuple[str, ...], *, abi: int = 3, folder: str = "", parent: int = 0
) -> dict[str, Any]:
    """Return the arguments of each of these layers, for code that is only called."""
    by_name: dict[str, Any] = {
        "rlimits": rlimits(limits),
        "die_with_parent": parent,
        "namespaces": None,
        "capabilities": None,
        "landlock": {
            "read": python_paths.readable(),
            "read_write": python_paths.READ_WRITE,
            "work": [folder] if folder else [],
        },
    }
    if platform.machine() in ARCHITECTURES and sys.platform == "linux":
        by_name["seccomp"] = _filter(abi >= 3)
    return {name: by_name[name] for name in layers if name in by_name}


def rlimits(limits: Limits) -> dict[str, int]:
    """As the kernel calls them."""
    return {
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }


@cache
def _filter(truncation_is_locked: bool) -> filters.Program:
    return filters.computing(platform.machine(), truncation_is_locked=truncation_is_locked)


def _tried(wanted: dict[str, Any]) -> dict[str, str]:
    """Return what each lock lacks. When they end the process together, each is tried by itself."""
    try:
        return probed(wanted, ())
    except SandboxError as error:
        if len(wanted) == 1:
            return dict.fromkeys(wanted, error.message)
    return {name: missing for lock in wanted for name, missing in _tried({lock: wanted[lock]}).items()}


def _untried(name: str) -> str:
    return f"no table of system calls for {platform.machine()}" if name == "seccomp" else "could not be tried"


def _bubblewrap_missing(abi: int) -> str:
    program = bubblewrap.program()
    if program is None:
        return "bwrap is not installed"
    try:
        probed(locks(Limits(), ("rlimits",), abi=abi), (program, *bubblewrap.computing(Limits())[1:], "--"))
    except SandboxError as error:
        return error.message
    return ""
