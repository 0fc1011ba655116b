"""The published study of a coding agent's emotions, read again: its files, its evaluators, what its numbers rest on."""
