"""Reading: plan the files to read, read and measure them in shards, and compute the values across sessions."""
