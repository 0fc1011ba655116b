"""Lines and their changes: hunks, diffs, regions followed through a session, outcomes of patches, Git objects."""
