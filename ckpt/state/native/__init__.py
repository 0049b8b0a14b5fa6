"""State read without Spark, into Arrow: the second engine, for what ``StateUnit`` describes.

``ckpt.formats.rows`` makes arrays of bytes; here is which bytes of a checkpoint, and what the arrays are columns of.
"""

import ckpt.formats.rows  # noqa: F401  (which says in one line what is not installed)
