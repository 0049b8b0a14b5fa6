"""Planned changes of a checkpoint in place: plan, backup, apply, undo, and one package for each command that plans one.

New checkpoints are written by ``ckpt.new``.
"""
