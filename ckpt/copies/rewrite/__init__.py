"""A new checkpoint with the state of another one, in another form (``ckpt rewrite``)."""
