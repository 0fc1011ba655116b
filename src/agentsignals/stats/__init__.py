"""Estimates, intervals, agreement, groups. Pure and deterministic."""
