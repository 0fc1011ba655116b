"""The measures of SWE-chat: how person and agent took turns, and whose code came of it."""
