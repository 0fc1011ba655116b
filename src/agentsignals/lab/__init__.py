"""The activation lab: directions in a model's residual stream, steering along them, a retry loop with hidden tests."""
