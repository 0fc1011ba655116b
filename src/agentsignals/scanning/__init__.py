"""Which weaknesses came with a commit, which went, and with whose lines."""
