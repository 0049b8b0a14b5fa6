"""HTML: pages that need no other file, and what notebooks show."""
