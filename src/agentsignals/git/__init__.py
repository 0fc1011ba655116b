"""What a Git repository holds, and what its history says. Nothing is fetched here, nothing of it is run."""
