"""Which state stores and files a checkpoint has, and whether the next start can load them, judged by names and ends.

The modules compute, and ``read_steps`` says what has to be read; rows are decoded in ``ckpt.state``.
"""
