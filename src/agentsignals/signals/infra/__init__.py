"""What the machinery around an attempt did: how long it took, and how it ended."""
