"""Back to an earlier batch: which files belong to later ones, and what becomes of their rows (``ckpt rewind``)."""
