"""Every role can be loaded by the Python of a Spark version, in which pyspark is installed and nothing else."""

import subprocess
import sys

from tests.record.process import ROLES
from tests.support.places import ROOT

LOAD = """
import sys
from tests.record.process import ROLES, load
ours = "confluent_kafka", "delta", "duckdb", "numpy", "pandas", "pyarrow", "pytest", "typer"
sys.modules |= dict.fromkeys(ours, None)
for name, role in ROLES.items():
    print(name, load(role.answer), load(role.session))
"""


def test_no_role_needs_another_package() -> None:
    ran = subprocess.run([sys.executable, "-c", LOAD], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == [*ROLES]
