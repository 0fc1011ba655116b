"""Instruction files (AGENTS.md, CLAUDE.md and their like): the mechanical rules in them, whether they were kept, and
whether their introduction changed anything (docs/rules.md)."""
