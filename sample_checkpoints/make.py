"""Makes every sample again with real Spark, derives the damaged ones, and writes README.md and answers.json.

    python sample_checkpoints/make.py --spark 3.5=/path/to/python --spark 4.2=... [--only NAME ...]

What is made is data in `tests/support/spark/` (`queries.py`, `samples.py`, `damage.py`), and so is the work.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.support.spark.make import main

    sys.exit(main())
