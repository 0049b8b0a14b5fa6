"""What real Sparks answered: `python -m tests.record` asks them and keeps their answers, suite by suite."""
