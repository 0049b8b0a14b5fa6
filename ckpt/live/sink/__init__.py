"""What a sink has written, by its own log: ``ckpt inspect --sink``. Reads that one place, and never writes."""
