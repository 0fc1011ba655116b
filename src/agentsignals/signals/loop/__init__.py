"""The retry loop of llm-emotions: whether attempts pass the tests, and what their code and words show."""
