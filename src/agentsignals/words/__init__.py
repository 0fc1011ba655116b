"""What people's and agents' words mean: reactions, hedges, languages, files that are named."""
