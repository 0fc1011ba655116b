"""An agent at work on a repository: it reads, edits and tests a copy in words of a small protocol, then hands it in."""
