"""The meaning of offsets, for each kind of source: decode, compare, count, move and show them. Pure.

What a source has now is asked in ``ckpt.live``.
"""
