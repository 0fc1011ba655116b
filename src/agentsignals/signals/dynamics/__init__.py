"""How a session moves: corrections, repetitions, drift from what was asked for, and how it failed."""
