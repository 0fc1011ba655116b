"""Causal language models of 0.3 million weights, trained from scratch on a world whose law is known.

It is there to test methods, not to say anything about real models: what an analysis should find in it was put there.
"""
