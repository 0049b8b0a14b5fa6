"""Checkpoints that somebody made to harm, and those that are too large."""
