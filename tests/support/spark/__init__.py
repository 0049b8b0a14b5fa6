"""Real streaming queries and the damage done to their checkpoints."""
