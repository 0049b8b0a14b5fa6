"""Fixes without a backup: go back to a batch, or leave one out (``ckpt rewind``, ``ckpt skip``)."""
