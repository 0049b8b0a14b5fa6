"""A query, apart from any session: its description, and how it differs from another one, or from a checkpoint.

What a start makes of the differences is in ``ckpt.inspection``; state is carried over by ``ckpt.new``.
"""
