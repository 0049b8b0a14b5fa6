"""Fixes of a checkpoint that will not restart, compared by what they cost (``ckpt repair``)."""
