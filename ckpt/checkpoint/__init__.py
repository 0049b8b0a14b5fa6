"""What one checkpoint holds: the reader, its batches, what its sources' offsets mean, which state files are there.

Everything here is a fact about the files. What a start makes of them is in ``ckpt.restart``, rows of state are in
``ckpt.state``.
"""
