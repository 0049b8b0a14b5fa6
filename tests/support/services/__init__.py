"""Real services on loopback ports for the tests, and an object store that is slow by design."""
