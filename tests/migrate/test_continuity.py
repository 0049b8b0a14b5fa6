"""Old query, stop, migration, generated query on real Spark, Kafka and Delta, against a query that nobody stopped.

The answers of the two queries together are those of the control: none is missing, none comes twice. All are recorded:
`python -m tests.support.spark.recording continuity`.
"""

from tests.migrate.continuity import split
from tests.migrate.continuity_cases import EVERY, expected
from tests.migrate.continuity_input import STOP
from tests.support.spark.recording import read


def test_the_new_query_went_on_as_if_nothing_had_happened() -> None:
    recorded = read("continuity")
    assert sorted(recorded) == sorted(EVERY)
    for case, answer in recorded.items():
        kind, _, stop = split(case)
        assert (answer["lost"], answer["surplus"], answer["rows"]) == ([], [], expected(kind)), case
        assert answer["answers"]["old"] * answer["answers"]["new"] > 0, case
        offsets, commits = answer["batches"]["old"]["offsets"], answer["batches"]["old"]["commits"]
        assert commits[:STOP] == list(range(STOP))
        assert offsets == (list(range(STOP + 1)) if stop == "killed" else commits)
        assert commits[STOP:] == [] or stop == "clean"
        assert answer["batches"]["new"]["offsets"] == answer["batches"]["new"]["commits"]
