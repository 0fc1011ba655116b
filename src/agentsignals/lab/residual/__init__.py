"""A causal language model whose residual stream can be read and changed. The only package that knows torch."""
