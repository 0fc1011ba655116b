"""Deterministic measures: the signal `user.turn_ratio` is declared in a module of the folder `user`."""
