"""What became of lines: hunks, diffs, regions that are followed through a session, verdicts on a patch."""
