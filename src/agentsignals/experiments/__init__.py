"""Experiments: replication of published claims, and the search over knobs."""
