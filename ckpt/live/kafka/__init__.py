"""Kafka as a source: asking the cluster, reader options, and what a start makes of the answer."""
