"""Sources and sinks of a query as they are now, and what the next start makes of them.

Each kind has a package: asking (I/O) is apart from the rules (pure). Nothing here judges the checkpoint alone: that is
``ckpt.restart``.
"""
