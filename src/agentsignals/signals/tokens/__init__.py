"""What model calls used, and what it cost."""
