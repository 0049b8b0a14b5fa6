"""A reading of state, planned without a JVM: units, batch, columns, settings, and where Spark finds the files."""
