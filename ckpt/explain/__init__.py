"""What an error message, or a whole driver log, means: a catalog of known errors, and the search for them in a text."""

from ckpt.explain.catalog import KnownError, catalog
from ckpt.explain.nearest import NearError
from ckpt.explain.perform import ErrorMatch, Explanation, explain_error

__all__ = ["ErrorMatch", "Explanation", "KnownError", "NearError", "catalog", "explain_error"]
