"""Plans how a checkpoint is carried over to a changed query (``ckpt evolve``): other sources, operators and columns."""
