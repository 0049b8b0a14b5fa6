"""A new checkpoint from which a changed query continues (``ckpt evolve CHECKPOINT NEW``)."""
