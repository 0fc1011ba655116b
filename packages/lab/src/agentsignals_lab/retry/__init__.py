"""The retry loop: a model writes a function, hears what its visible tests said, and tries again."""
