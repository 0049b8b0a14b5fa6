"""Planning an export of state: which unit, of which batch, under which settings, in which columns. Starts no JVM."""
