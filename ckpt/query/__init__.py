"""Describes a query apart from any session, and compares it with another one, or with a checkpoint.

What a start makes of the differences is in ``ckpt.inspection``; state is carried over by ``ckpt.new``.
"""
