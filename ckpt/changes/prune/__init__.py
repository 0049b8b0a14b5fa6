"""``ckpt prune``: removes files that no restart needs."""
