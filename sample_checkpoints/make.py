"""Makes every sample again with real Spark, derives the damaged ones, and writes README.md and answers.json.

    python sample_checkpoints/make.py --spark 3.5=/path/to/python --spark 4.2=... [--only NAME]

Each `--spark` is a Spark version and a Python interpreter that has that pyspark, pandas, pyarrow and protobuf; samples of
versions not given are left as they are. Kafka and Delta come through Maven. Without `--spark` only the damaged
samples and the README are made again, from the samples that are there. What is made is data in `tests/spark/`:
`queries.py`, `samples.py` and `damage.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.spark import damage, kafka, mutations, page  # noqa: E402
from tests.spark.queries import QUERIES  # noqa: E402
from tests.spark.samples import FOLDER, ORIGIN, SAMPLES, Sample  # noqa: E402
