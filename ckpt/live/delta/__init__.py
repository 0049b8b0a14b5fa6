"""A Delta table as a source: reading its log, reader options, and what a start makes of it."""
