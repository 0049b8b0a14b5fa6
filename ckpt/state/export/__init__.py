"""Exports of state: the request, what blocks it, where it goes, and writing it without Spark."""
