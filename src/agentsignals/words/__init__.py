"""Words and text: lists, patterns, prose, languages."""
