"""What an answer is worth: extraction, evaluation in the sandbox, scores of what it did, re-scoring of stored ones."""
