"""From files to shards: what has changed, what belongs together, and the function that reads one shard."""
