"""A consistent copy of a checkpoint as of one of its committed batches, also while the query runs (``ckpt copy``)."""
