"""Evaluation of answers: extraction, runs in the sandbox, scores."""
