"""What the sources and the sink of a query have now, and what the next start makes of that.

Each kind has a package: asking (I/O) is apart from the rules (pure). Nothing here judges the checkpoint alone: that is
``ckpt.restart``.
"""
