"""Views of one session that signals share: its evidence, its place among other sessions, its plans, its audit."""
