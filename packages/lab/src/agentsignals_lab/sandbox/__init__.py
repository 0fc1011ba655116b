"""Runs code nobody has read, a model's answer, in bubblewrap. Values come out, nothing else.

`call(source, function, inputs)` answers with a value or a failure for each input; `same` compares it with what is
expected, here and not there. What locks a process in, and what does not, stands in docs/sandbox.md.
"""

from agentsignals_lab.sandbox.calling import call, printable
from agentsignals_lab.sandbox.confinement import TIER, missing, require
from agentsignals_lab.sandbox.equality import same, shown
from agentsignals_lab.sandbox.outcome import Failed, Limits, Outcome, Result, Returned

__all__ = [
    "TIER",
    "Failed",
    "Limits",
    "Outcome",
    "Result",
    "Returned",
    "call",
    "missing",
    "printable",
    "require",
    "same",
    "shown",
]
