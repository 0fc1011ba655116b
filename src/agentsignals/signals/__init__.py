"""Deterministic measures, a family a file; `catalog._FAMILIES` names the files."""
