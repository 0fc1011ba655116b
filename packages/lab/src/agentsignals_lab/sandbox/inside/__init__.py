"""Code of the untrusted process before and around the untrusted code: standard library only, imported by path."""
