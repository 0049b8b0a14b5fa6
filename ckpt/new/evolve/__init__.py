"""A checkpoint carried over to a changed query (``ckpt evolve``): other sources, other operators."""
