"""Makes new checkpoints from old ones: a copy, state in another form (``rewrite``), state from an export (``fill``).

``evolve`` plans one for a changed query, and ``carry_over`` carries the plan out. The old checkpoint is never changed:
that is ``ckpt.changes``.
"""
