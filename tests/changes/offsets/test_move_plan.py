"""``ckpt offsets move`` without a broker: the plan, what is refused, and what the command repeats.

Clusters that answer from a table stand in here; ``test_move.py`` asks real ones.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

import ckpt
from ckpt.errors import UsageError
from ckpt.live.kafka.options import translate_options
from ckpt.live.kafka.records import RUN, HashedRecord
from ckpt.live.records import KafkaNow, Part, PartitionNow, TopicNow, Younger
from tests.changes.applying import facts
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLES
from tests.support.remedies import remove

SAMPLE = str(SAMPLES / "kafka-4.2")  # ends at orders/0=51 orders/1=49
FROM, TO = {"kafka.bootstrap.servers": "old:9092"}, {"kafka.bootstrap.servers": "new:9092"}
TYPED = ("--from", "bootstrap=old:9092", "--to", "kafka.bootstrap.servers=new:9092")


class Cluster:
    """The records of each partition: their offsets, and a number that stands for what is in them."""

    id, compacted = "other", False
    syncs: tuple[tuple[Part, int, int], ...] = ()

    def __init__(self, parts: Mapping[Part, Mapping[int, int]], latest: int | None = None) -> None:
        self.parts, self._latest = parts, latest

    def __call__(self, options: Mapping[str, str]) -> "Cluster":
        translate_options(options)
        return self

    def now(self, part: Part) -> PartitionNow:
        offsets = self.parts[part]
        return PartitionNow(min(offsets, default=0), self._latest or max(offsets, default=-1) + 1)

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicNow]:
        numbers = {name: tuple(number for topic, number in self.parts if topic == name) for name in names}
        return {name: TopicNow(self.id if parts else None, parts) for name, parts in numbers.items()}

    def find_offsets(self, parts: Iterable[Part], at: str | int) -> dict[Part, int]:
        if isinstance(at, int):
            return {
                part: next((offset for offset, number in self.parts[part].items() if number >= at), -1)
                for part in parts
            }
        return {part: getattr(self.now(part), at) for part in parts}

    def read(self, part: Part, start: int) -> Iterator[HashedRecord]:
        records = self.parts[part].items()
        yield from (HashedRecord(offset, str(number).encode(), number) for offset, number in records if offset >= start)

    def read_around(self, part: Part, end: int, earliest: int) -> tuple[list[HashedRecord], list[HashedRecord]]:
        before = [record for record in self.read(part, earliest) if record.offset < end]
        return before[-RUN:], list(islice(self.read(part, end), RUN))

    def is_compacted(self, topic: str) -> bool:
        return self.compacted

    def read_syncs(self) -> Any:
        return self.syncs

    def close(self) -> None:
        """Nothing is open."""


def whole(count: int, shift: int = 0, topic: str = "orders") -> dict[Part, dict[int, int]]:
    return {(topic, part): {at + shift: at for at in range(count)} for part in (0, 1)}


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put two clusters in the place of brokers."""

    def use(old: Cluster, new: Cluster, **now: Any) -> None:
        old.id = "old" if old is not new else new.id
        readers = {"old:9092": old, "new:9092": new}
        monkeypatch.setattr(
            "ckpt.changes.offsets.move.RecordReader",
            lambda options: readers[translate_options(options)["bootstrap.servers"]](options),
        )
        answer = KafkaNow(old.describe_topics(["orders"]), {part: old.now(part) for part in old.parts}, **now)
        monkeypatch.setattr("ckpt.changes.offsets.move.ask_kafka", lambda request: answer)

    return use


def test_the_plan_continues_after_the_last_record(clusters: Any, ckpt: Ckpt, copy_of: CopyOf) -> None:
    clusters(Cluster(whole(70)), Cluster(whole(70, 1000, "old.orders")))
    checkpoint = copy_of("kafka-4.2")
    before = facts(checkpoint)
    words = ("offsets", "move", checkpoint, *TYPED, "--topic", "orders=old.orders")
    page = " ".join(ckpt(*words).stdout.split())
    assert (
        "2 partitions continue exactly after the last record that the query has read: ckpt compared 79 records" in page
    )
    assert "Then start the query with kafka.bootstrap.servers=new:9092" in page
    assert "--from-options bootstrap=old:9092 --to-options kafka.bootstrap.servers=new:9092 --topic" in page
    document = ckpt(*words, "-o", "json").json()
    assert contract.disagreements(document, "offsets move") == []
    assert (document["skipped"], document["replay"]) == ([], [])
    done = ckpt(*document["next"][0]["command"][1:], "--grace", 0, "-o", "json").json()
    assert done["applied"], done["refused"]
    moved = {"old.orders": {"0": 1051, "1": 1049}}
    assert json.loads((checkpoint / "offsets" / "5").read_text().splitlines()[2]) == moved
    undone = ckpt("offsets", "move", checkpoint, "--undo", done["backup"], "--grace", 0)
    assert undone.exit_code == 0, undone.stdout
    assert facts(checkpoint) == before


def test_equal_offsets_need_no_change(clusters: Any) -> None:
    clusters(Cluster(whole(70)), Cluster(whole(70)))
    plan, _ = ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO)
    assert (plan.needed, plan.why) == (
        False,
        "batch 5 already ends there, also on the new cluster: start the query on it",
    )


def test_secrets_are_not_shown(clusters: Any, ckpt: Ckpt, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters(Cluster(whole(70)), Cluster(whole(70, 7)))
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush-hush";'
    secured = ("kafka.security.protocol=SASL_PLAINTEXT", "kafka.sasl.mechanism=PLAIN")
    monkeypatch.setenv("LOGIN", login)
    typed = [word for option in secured for word in ("--to", option)]
    for form in ("table", "json", "html", "github"):
        for given in (login, "env:LOGIN"):
            where = ("--to", f"kafka.sasl.jaas.config={given}")
            run = ckpt("offsets", "move", SAMPLE, *TYPED, *typed, *where, "-o", form)
            assert "hush-hush" not in run.stdout + run.stderr
            assert ("env:LOGIN" in run.stdout) is (given == "env:LOGIN")
    run = ckpt("offsets", "move", SAMPLE, *TYPED, "--to", "kafka.sasl.jaas.config=env:NO_LOGIN")
    assert "--to-options" in run.stderr
    assert "no environment variable" in run.stderr


def test_a_hint_of_mirror_maker_shows_where_to_look(clusters: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckpt.changes.offsets.move._WINDOW", 70)
    monkeypatch.setattr("ckpt.changes.offsets.move._SLACK", 20)
    old, new = Cluster(whole(70)), Cluster({part: dict.fromkeys(range(500), 90) for part in whole(0)})
    for records in new.parts.values():
        records.update({at + 400: at for at in range(70)})  # type: ignore[attr-defined]
    clusters(old, new)
    assert ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO).plan.refused
    old.syncs = ((("orders", 0), 45, 445), (("orders", 1), 10, 410), (("orders", 1), 60, 460))
    plan, _ = ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO)
    assert plan.moved[0].new.value == {"orders": {"0": 451, "1": 449}}


COUNTS = "up to 100 rows would come twice (from the beginning of the new topics), or up to 40 rows would never come"
THREE = {**whole(70), ("orders", 2): {}}


@pytest.mark.parametrize(
    ("old", "new", "now", "said"),
    [
        (Cluster(whole(70)), Cluster({}), {}, "the new cluster has no topic orders"),
        (Cluster({}), Cluster(whole(70)), {}, "the old cluster has no topic orders"),
        (Cluster(whole(70)), Cluster(THREE), {}, "orders has 2 partitions, but orders of the new cluster has 3"),
        (Cluster(whole(70)), Cluster(THREE), {}, COUNTS),
        (Cluster(whole(40)), Cluster(whole(70)), {}, "it was recreated or has lost rows"),
        (Cluster(whole(70)), Cluster(whole(48)), {}, "orders/0: the mirror has not yet copied the last 3 rows that"),
        (Cluster(whole(70)), Cluster(whole(48)), {}, COUNTS),
        (Cluster(whole(0), 51), Cluster(whole(70)), {}, "no record left to compare, and 70 rows on the new cluster"),
    ],
)
def test_what_is_refused(old: Cluster, new: Cluster, now: Any, said: str, clusters: Any) -> None:
    clusters(old, new, **now)
    plan, receipt = ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO, apply=True, grace=0)
    assert said in str(plan.refused)
    assert plan.instead is not None
    assert [step.call.name for step in plan.instead.steps if step.call] == ["offsets_show"]  # no look at what is sound
    assert not receipt.applied


def test_a_topic_is_not_compared_with_itself(clusters: Any) -> None:
    same = Cluster(whole(70))
    clusters(same, same)
    assert "are the same topic" in str(ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO).plan.refused)


def test_a_recreated_topic_is_not_compared(clusters: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Cluster(whole(70))
    clusters(old, Cluster(whole(70, 7)))
    younger = {part: PartitionNow(0, 70, Younger(3, 12)) for part in old.parts}
    answer = KafkaNow(old.describe_topics(["orders"]), younger)
    monkeypatch.setattr("ckpt.changes.offsets.move.ask_kafka", lambda request: answer)
    assert "it was recreated" in str(ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO).plan.refused)


@pytest.mark.parametrize("compacted", [True, False])
def test_a_row_in_a_gap_of_compaction_may_have_been_read(compacted: bool, clusters: Any) -> None:
    """The query ends after a gap, and the old topic too; the copy has more rows."""
    old = Cluster({part: {at: at for at in range(45)} for part in whole(0)}, latest=51)
    old.compacted = compacted
    clusters(old, Cluster(whole(60, 5)))
    plan, _ = ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO)
    if compacted:
        assert "orders/0: 15 rows around the query's end exist on only one of the clusters" in str(plan.refused)
    else:
        assert plan.moved[0].new.value == {"orders": {"0": 50, "1": 50}}


def test_empty_partitions(clusters: Any) -> None:
    old = Cluster(whole(0), 51)
    clusters(old, Cluster(whole(0)))
    plan, _ = ckpt.offsets_move(SAMPLE, from_options=FROM, to_options=TO)
    assert plan.moved[0].new.value == {"orders": {"0": 0, "1": 0}}


def test_a_batch_that_was_planned_on_the_old_cluster_runs_there(clusters: Any, copy_of: CopyOf) -> None:
    clusters(Cluster(whole(70)), Cluster(whole(70, 7)))
    checkpoint = copy_of("kafka-4.2")
    remove(checkpoint / "commits" / "5")
    plan, _ = ckpt.offsets_move(checkpoint, from_options=FROM, to_options=TO)
    assert "batch 5 is planned on the old cluster but not committed" in str(plan.refused)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"from_options": FROM}, "name both clusters with `from_options` and `to_options`"),
        ({"from_options": FROM, "to_options": {"bootstrap": "x"}}, "`to_options`: the Kafka source of Spark has no"),
        (
            {"from_options": FROM, "to_options": TO, "topic": {"order": "x"}},
            "`topic`: give each of orders another name",
        ),
    ],
)
def test_bad_usage(how: Any, said: str, clusters: Any) -> None:
    clusters(Cluster(whole(70)), Cluster(whole(70)))
    with pytest.raises(UsageError, match=said):
        ckpt.offsets_move(SAMPLE, **how)


def test_another_source_is_refused() -> None:
    plan, _ = ckpt.offsets_move(SAMPLES / "delta-4.2", from_options=FROM, to_options=TO)
    assert str(plan.refused) == "source 0 is of type delta: only a Kafka source can move to another cluster"
