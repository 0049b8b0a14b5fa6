"""Rows of state: which unit, batch and columns can be read, and reading, exporting and verifying them.

Which files there are is in ``ckpt.checkpoint.state``, what their bytes mean in ``ckpt.formats``.
"""
