"""Evaluation of answers: extraction, runs in the sandbox, scores of conduct, re-scoring of stored answers."""
