"""Tests of ckpt."""
