"""A folder of files as a source: listing it, and what a start makes of it."""
