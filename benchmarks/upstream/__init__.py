"""What agents of the newest versions write, compared with what our readers read: `make watch-upstream`."""
