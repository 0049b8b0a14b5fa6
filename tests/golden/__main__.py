"""``python -m tests.golden [SAMPLE ...]``: write the golden answers again."""

import os
import sys

from tests.golden import record
from tests.places import HERE

os.chdir(HERE)
record(sys.argv[1:])
