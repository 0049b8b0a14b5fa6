"""What the log of a sink remembers of batches (``--sink``): Delta, Iceberg and file sinks. Reads that one place."""
