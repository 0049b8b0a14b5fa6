"""``ckpt offsets``: show where the sources stand, and let the next new batch begin elsewhere."""
