"""How the agent thought: phases of the work, plans, corrections of itself."""
