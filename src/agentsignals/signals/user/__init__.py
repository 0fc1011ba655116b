"""The person's side of a session: what they said and when, what was asked of them, what became of the work."""
