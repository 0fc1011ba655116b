"""Small made-up logs of coding agents with the right answers: see README.md."""
