"""What an error message, or a whole driver log, means: a catalog of known errors, and the search for them in a text."""
