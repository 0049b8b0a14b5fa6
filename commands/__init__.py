"""The terminal: argument, one library call, text, exit code."""
