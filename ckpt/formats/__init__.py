"""Bytes to record, one module per kind of file; pure, no I/O. Each fact cites the Spark class it comes from."""
