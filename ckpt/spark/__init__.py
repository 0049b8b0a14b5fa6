"""The only rooms that import pyspark and delta: a session, Spark's state reader, shapes, and writing exports.

``needs`` can be imported without pyspark and says what is missing; everything else needs it.
"""
