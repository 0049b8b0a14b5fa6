"""What each Spark version does at the next start."""
