"""Checkpoints of declarative pipelines."""
