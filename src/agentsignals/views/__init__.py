"""What signals look at: one session seen in several ways, its evidence, its place among others, its plans."""
