"""The measures of agent-traces: of a session among others, and of all sessions together."""
