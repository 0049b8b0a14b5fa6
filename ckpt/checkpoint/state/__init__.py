"""State stores and files of a checkpoint, and the damage that the next start would meet, judged by names and ends.

The modules compute, and ``read_steps`` says what has to be read; rows are decoded in ``ckpt.state``.
"""
