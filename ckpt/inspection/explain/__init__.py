"""What an error message, or a whole driver log, means: a catalog of known errors, and the search for them in a text."""

from ckpt.inspection.explain.catalog import KnownError, catalog
from ckpt.inspection.explain.explain import ErrorMatch, Explanation, explain_error
from ckpt.inspection.explain.nearest import NearError

__all__ = ["ErrorMatch", "Explanation", "KnownError", "NearError", "catalog", "explain_error"]
