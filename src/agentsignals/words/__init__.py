"""Word lists and text tools: reactions of people, hedges of agents, languages, named files."""
