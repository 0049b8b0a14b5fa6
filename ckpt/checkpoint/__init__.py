"""A checkpoint as it is: the reader, its batches, the meaning of its sources' offsets, and its state files.

Everything here is a fact about the files. What a start makes of them is in ``ckpt.restart``, rows of state are in
``ckpt.state``.
"""
