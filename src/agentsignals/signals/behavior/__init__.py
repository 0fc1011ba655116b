"""What the agent did, in what order, to which files."""
