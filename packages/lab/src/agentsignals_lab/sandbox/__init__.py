"""Runs code nobody has read: a model's answer, an agent's work. Values come out, nothing else.

`call(source, function, inputs)` answers with a value or a failure for each input; `same` compares it with what is
expected, here and not there. `converse(folder, ask)` does the same with the code of a checkout, and
`run_in_checkout(folder, argv)` runs an agent's commands. What locks a process in, and what does not, stands in
docs/sandbox.md.
"""

from agentsignals_lab.sandbox.calling import call, printable
from agentsignals_lab.sandbox.capability import capabilities, tiers
from agentsignals_lab.sandbox.checkout import run_in_checkout
from agentsignals_lab.sandbox.conversation import (
    Code,
    Conversed,
    NoAnswer,
    Remote,
    Talk,
    converse,
    load,
    remote_through,
)
from agentsignals_lab.sandbox.equality import same, shown
from agentsignals_lab.sandbox.outcome import (
    TIERS,
    Capabilities,
    Failed,
    Layer,
    Limits,
    Outcome,
    Ran,
    Result,
    Returned,
    Tier,
)

__all__ = [
    "TIERS",
    "Capabilities",
    "Code",
    "Conversed",
    "Failed",
    "Layer",
    "Limits",
    "NoAnswer",
    "Outcome",
    "Ran",
    "Remote",
    "Result",
    "Returned",
    "Talk",
    "Tier",
    "call",
    "capabilities",
    "converse",
    "load",
    "printable",
    "remote_through",
    "run_in_checkout",
    "same",
    "shown",
    "tiers",
]
