"""New queries that continue an old one: handoff, changelog checkpointing, another provider, transformWithState.

Nothing here writes to a checkpoint.
"""
