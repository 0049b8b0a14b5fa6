"""The bytes of state files as Arrow arrays: pure functions, without a JVM.

numpy and pyarrow look at all rows of a batch at once. What does not fit the schema or the format raises
``Undecodable``: nothing here guesses.
"""

from importlib.util import find_spec

from ckpt.errors import CkptError
from ckpt.extras import install_command


class NativeMissing(CkptError, ImportError):
    """Something that reading state without Spark needs is not installed."""


if any(find_spec(name) is None for name in ("google_crc32c", "numpy", "xxhash")):
    raise NativeMissing(f"reading state without Spark needs more packages: {install_command('native')}")
