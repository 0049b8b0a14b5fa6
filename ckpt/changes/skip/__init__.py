"""The planned batch counts as done, without its rows (``ckpt skip``)."""
