"""Damages as people report them, on eight samples, and what becomes of those who obey.

A generator with a seed makes them (``damages.py``). Without Spark ``test_pages.py`` asks ``inspect``, ``preflight``,
``scan`` and ``repair`` about each; ``recorder.py`` starts each with Spark, as it is and after its page was obeyed, and
counts the rows of the sink.
"""
