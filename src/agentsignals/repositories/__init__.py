"""Whose lines a commit added, and what became of them."""

from __future__ import annotations
