"""``python -m tests.inspection.golden [SAMPLE ...]``: write the golden answers again."""

import os
import sys

from tests.inspection.golden import record
from tests.support.places import HERE

os.chdir(HERE)
record(sys.argv[1:])
