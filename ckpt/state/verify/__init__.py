"""Every byte of the state that any batch needs (``ckpt state verify``, ``ckpt inspect --deep``)."""
