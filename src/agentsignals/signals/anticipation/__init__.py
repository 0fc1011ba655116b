"""Whether the agent understood what was wanted before it was told more."""
