"""Bytes to records and back: one module per kind of file, pure. Each fact cites the Spark class it comes from.

``rows`` has the bytes inside state files. Which files there are, and what follows from them, is above.
"""
