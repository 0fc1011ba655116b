"""Hermes' tools, met in data sets of other formats."""
