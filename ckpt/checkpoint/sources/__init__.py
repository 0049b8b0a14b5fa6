"""What the offsets of each kind of source mean: decode, compare, count and shift them, and show them. Pure.

What a source has now is asked in ``ckpt.live``.
"""
