"""``ckpt scan``: every checkpoint below some roots, one line each."""
