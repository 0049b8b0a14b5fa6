"""The terminal: arguments, one library call, text, exit code.

A command starts, looks once and ends, and most of what it costs is its start and its end.
"""

import atexit
import gc
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy, which starts them and lets them spin; ckpt uses none
gc.set_threshold(100_000)  # imports make many objects, and nothing to collect


@atexit.register
def _freeze() -> None:
    """Nor is there any reason to collect before the end of the process, but that DuckDB would report leaks."""
    if "duckdb" not in sys.modules:
        gc.freeze()
