"""The activation lab: directions in a model's residual stream, steering along them, a retry loop with hidden tests."""

from __future__ import annotations

from importlib.util import find_spec

INSTALL = "pip install './packages/lab[torch]' in a checkout of agentsignals"
CPU_WHEEL = (
    "Without a GPU, before that: pip install torch --index-url https://download.pytorch.org/whl/cpu"
    " (0.2 GB; the usual wheel for Linux brings CUDA, several GB)."
)


def how_to_install() -> str:
    """The command that installs what a model in this process needs, and a word on torch where that is missing."""
    return f"{INSTALL}{'' if find_spec('torch') else f'. {CPU_WHEEL}'}"
