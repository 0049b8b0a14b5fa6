"""Explain an error message or a whole driver log: a catalog of known errors, and the search for them in a text."""
