"""The only package that imports pyspark and delta: a session, Spark's state reader, executors, and writing exports."""
