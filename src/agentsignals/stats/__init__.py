"""Intervals, tests, agreement coefficients and clustering. Pure and deterministic."""
