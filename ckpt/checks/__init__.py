"""One function per finding, grouped by what it looks at."""
