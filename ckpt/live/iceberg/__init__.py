"""An Iceberg table as a source: reading its metadata, and what a start makes of it."""
