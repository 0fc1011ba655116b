"""The person's side of a session: what they said and when, what the agent asked of them, and what became of its work."""
