"""The bytes of state files as Arrow arrays: pure functions, without a JVM.

numpy and pyarrow look at all rows of a batch at once. What does not fit the schema or the format raises
``Undecodable``: nothing here guesses.
"""

from importlib.util import find_spec

from ckpt.errors import CkptError


class NativeMissing(CkptError, ImportError):
    """Something that reading state without Spark needs is not installed."""


if find_spec("numpy") is None or find_spec("xxhash") is None:
    raise NativeMissing("reading state without Spark needs more packages: pip install 'spark-ckpt[native]'")
