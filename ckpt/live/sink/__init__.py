"""Reads which batches a sink has (``--sink``): Delta, Iceberg, file sinks, and those of plugins."""
