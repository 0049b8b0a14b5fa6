"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out."""

__version__ = "0.1.0"

__all__ = ["__version__"]
