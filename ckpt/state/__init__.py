"""State stores without a JVM: file names, chains, what can be loaded."""
