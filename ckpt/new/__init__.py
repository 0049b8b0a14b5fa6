"""New checkpoints made from old ones: a copy, state in another form (``rewrite``), state from an export (``fill``).

The old checkpoint is never changed: that is ``ckpt.changes``.
"""
