"""From the place where a checkpoint was written to the one where it is opened (``ckpt relocate``)."""
