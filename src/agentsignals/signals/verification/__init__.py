"""What the task's tests say of an attempt's patch."""
