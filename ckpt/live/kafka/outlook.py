"""Foresees what the next start makes of a Kafka source that was asked, by rules that were measured; pure."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ckpt.advice import Advice, Code, Words
from ckpt.checkpoint.sources.kafka import NO_TOPIC_YET, KafkaOffset
from ckpt.checkpoint.sources.registry import Offset, SourceRange
from ckpt.live.book import BOOK
from ckpt.live.kind import NextRead
from ckpt.live.outlook import (
    NOT_IN_LOG,
    RECREATED,
    Fate,
    PartOutlook,
    SourceOutcome,
    SourceOutlook,
    Stop,
    move_end,
)
from ckpt.live.records import KafkaNow, Part, PartitionNow
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Diagnosis, Finding, Outcome
from ckpt.texts import plural
from ckpt.versions import Rules


def foresee_partitions(reading: SourceRange, now: KafkaNow, *, passed: bool = False) -> tuple[PartOutlook, ...] | None:
    """Foresee each partition that the next batch reads, or would; None where its start is not known.

    ``passed``: that batch was planned, and the sink skips it without reading: what counts is the one after it.
    """
    start, end = _partitions_of(reading.start_offset), _partitions_of(reading.end_offset)
    if start is None or (reading.end is not None and end is None):
        return None
    known = start if end is None else end
    if passed and end is not None:
        outlooks = [replace(_foresee_known(part, end, None, now), later=True) for part in known]
    else:
        outlooks = [_foresee_known(part, start, end, now) for part in known]
    read = now.topics if now.subscribed is None else now.subscribed
    topics = [(topic, now.topics[topic].partitions) for topic in read if topic in now.topics]
    new = [(topic, number) for topic, numbers in topics for number in numbers if (topic, number) not in known]
    outlooks += [replace(_foresee_known(part, {}, None, now), later=end is not None) for part in new]
    recreated = {outlook.topic for outlook in outlooks if outlook.fate in RECREATED}
    for at, outlook in enumerate(outlooks):
        if outlook.fate is Fate.CONTINUES and outlook.topic in recreated:
            outlooks[at] = replace(outlook, fate=Fate.LOOKS_RECREATED)
    return tuple(sorted(outlooks, key=lambda outlook: outlook.part))


def _partitions_of(offset: Offset | None) -> Mapping[Part, int] | None:
    if offset == NO_TOPIC_YET:
        return {}
    return offset.partitions if isinstance(offset, KafkaOffset) else None


def _foresee_known(part: Part, start: Mapping[Part, int], end: Mapping[Part, int] | None, now: KafkaNow) -> PartOutlook:
    a, b, there = start.get(part), end[part] if end is not None else None, now.partitions.get(part)
    if now.subscribed is not None and part[0] not in now.subscribed:
        return PartOutlook(part, Fate.NOT_SUBSCRIBED, a, b, there, later=b is not None)
    if there is None:
        missing = part[0] not in now.topics or now.topics[part[0]].id is None
        return PartOutlook(part, Fate.NO_TOPIC if missing else Fate.GONE, a, b, None)
    if a is None:
        fate = Fate.ADDED_LATE if there.earliest else Fate.WAITS if b is not None and there.latest < b else Fate.ADDED
        return PartOutlook(part, fate, a, b, there)
    nothing = b is not None and a == b
    return PartOutlook(part, _choose_fate(a, None if nothing else b, there), a, b, there, later=nothing)


def _choose_fate(a: int, b: int | None, there: PartitionNow) -> Fate:
    if there.latest < a:
        return Fate.ENDS_EARLIER
    if there.earliest > a:
        return Fate.EXPIRED
    if b is not None and there.latest < b:
        return Fate.WAITS
    return Fate.LOOKS_RECREATED if there.younger is not None else Fate.CONTINUES


_ORDER = (Fate.NO_TOPIC, Fate.ADDED_LATE, Fate.GONE, Fate.NOT_SUBSCRIBED, Fate.ENDS_EARLIER, Fate.EXPIRED)
"""In which a start comes to them as it plans a new batch; the first one ends it."""


def find_words(failing: tuple[PartOutlook, ...], *, again: bool, rules: Rules) -> str | None:
    """Find words of Spark's message for partitions that fail in one batch, which runs again or is new."""
    if again:
        if any(outlook.fate is Fate.NO_TOPIC for outlook in failing):
            return None  # Kafka's client waits, or makes the topic again
        return _find_common(_find_unread_words(outlook, rules) for outlook in failing) or None
    first = next(fate for fate in _ORDER if any(outlook.fate is fate for outlook in failing))
    same = [outlook for outlook in failing if outlook.fate is first]
    match first:
        case Fate.NO_TOPIC:
            return messages.NO_TOPIC
        case Fate.ADDED_LATE:
            words = (messages.ADDED_PARTITION.format(*part.part, part.now.earliest) for part in same if part.now)
            return _find_common(words)
        case Fate.GONE | Fate.NOT_SUBSCRIBED:
            return messages.partitions_deleted(rules)
        case Fate.ENDS_EARLIER:
            words = (messages.OFFSET_CHANGED.format(part.begin, part.now.latest) for part in same if part.now)
            return _find_common(words)
    return _find_common(_find_unread_words(outlook, rules) for outlook in same)


def _find_unread_words(outlook: PartOutlook, rules: Rules) -> str:
    if outlook.fate is Fate.GONE:
        return messages.NO_POSITION.format(*outlook.part)
    ends = outlook.now.latest if outlook.fate is Fate.WAITS and outlook.now is not None else 0
    return messages.unread(max(outlook.begin, ends), rules)


def _find_common(texts: Iterator[str]) -> str:
    """Find the words that several messages share, in whatever order the messages come."""
    first, *others = dict.fromkeys(texts)
    if not others:
        return first
    columns = takewhile(lambda column: len(set(column)) == 1, zip(first, *others, strict=False))
    return "".join(column[0] for column in columns).rstrip("0123456789")


_DIAGNOSES: Mapping[Fate, Diagnosis] = {
    Fate.LOOKS_RECREATED: diagnoses.sources.KAFKA_LOOKS_RECREATED,
    Fate.EXPIRED: diagnoses.sources.KAFKA_EXPIRED,
    Fate.ADDED_LATE: diagnoses.sources.KAFKA_EXPIRED,
    Fate.ENDS_EARLIER: diagnoses.sources.KAFKA_ENDS_EARLIER,
    Fate.WAITS: diagnoses.sources.KAFKA_ENDS_EARLIER,
    Fate.GONE: diagnoses.sources.KAFKA_ENDS_EARLIER,
    Fate.NOT_SUBSCRIBED: diagnoses.sources.KAFKA_NOT_SUBSCRIBED,
    Fate.NO_TOPIC: diagnoses.sources.KAFKA_NO_TOPIC,
}
_MOVES = {
    Fate.EXPIRED: "kafka_expired",
    Fate.ADDED_LATE: "kafka_expired",
    Fate.NOT_SUBSCRIBED: "kafka_not_subscribed",
    Fate.LOOKS_RECREATED: "kafka_looks_recreated",
}
"""Advice on a new batch, if all that is wrong with it is of that kind."""
_CERTAIN = (Fate.ENDS_EARLIER, Fate.WAITS, Fate.GONE)
_ALWAYS_FAILS = {False: Fate.NO_TOPIC, True: Fate.GONE}
"""With ``failOnDataLoss=false`` too: in a new batch, and in one that was planned."""


def foresee_kafka(start: NextRead, now: KafkaNow) -> SourceOutlook:
    """Foresee what the next start makes of a Kafka source; pure."""
    parts = foresee_partitions(start.range, now, passed=start.passed)
    if parts is None:
        return SourceOutlook(start.source, said=NOT_IN_LOG)
    judge = _Judge(start, now, parts)
    findings, outcome = tuple(judge.find()), SourceOutcome.CONTINUES
    if any(map(judge.fails, parts)):
        outcome = SourceOutcome.FAILS
    elif any(part.lost or part.fate is Fate.NO_TOPIC for part in parts):
        outcome = SourceOutcome.SKIPS
    waiting, lost = sum(part.waiting for part in parts), sum(part.lost for part in parts)
    sentence, stop = _describe(parts, waiting, lost), judge.find_stop(findings, start.forecast.spark.rules)
    return SourceOutlook(start.source, outcome, sentence, parts, findings, waiting, None, lost, stop)


def _describe(parts: Sequence[PartOutlook], waiting: int, lost: int) -> str:
    new = sum(part.fate is Fate.ADDED for part in parts)
    texts = [f"{plural(waiting, 'offset')} of {plural(len(parts), 'partition')} unread"]
    if new:
        texts.append(f"{plural(new, 'new partition')} will be read from the beginning")
    if lost:
        texts.append(f"a start with failOnDataLoss=false would never read {plural(lost, 'offset')}")
    return "; ".join(texts)


class _Judge:
    def __init__(self, start: NextRead, now: KafkaNow, parts: tuple[PartOutlook, ...]) -> None:
        self.now, self.parts, self.index, self.number = now, parts, start.range.index, str(start.forecast.batch_id)
        self.folder = start.source.folder
        self.passed = start.passed  # the batch that runs again is in the sink, which passes over it
        self.again = bool(start.forecast.reexecutes) and not start.passed

    def fails(self, part: PartOutlook) -> bool:
        return part.fate.fails if self.now.fail_on_data_loss else part.fate is _ALWAYS_FAILS[self.again]

    def find_stop(self, findings: Sequence[Finding], rules: Rules) -> Stop | None:
        stopping = tuple(part for part in self.parts if not part.later and self.fails(part))
        if not stopping:
            return None
        at_start = not self.again and any(part.fate is Fate.NO_TOPIC for part in stopping)
        why = {_DIAGNOSES[part.fate] for part in stopping}
        return Stop(
            Outcome.FAILS_AT_START if at_start else Outcome.FAILS_IN_BATCH,
            find_words(stopping, again=self.again, rules=rules),
            tuple(finding for finding in findings if finding.diagnosis in why),
        )

    def find(self) -> Iterator[Finding]:
        certain = {part.topic for part in self.parts if part.fate in _CERTAIN}
        groups: dict[Diagnosis, list[PartOutlook]] = {diagnosis: [] for diagnosis in _DIAGNOSES.values()}
        for part in self.parts:
            shown = part.fate is Fate.LOOKS_RECREATED and part.topic in certain  # by another partition
            if part.fate in _DIAGNOSES:
                groups[_DIAGNOSES[Fate.GONE if shown else part.fate]].append(part)
        for diagnosis, same in groups.items():
            always = (Fate.NO_TOPIC, _ALWAYS_FAILS[self.again])
            fails = self.now.fail_on_data_loss or any(part.fate in always for part in same)
            if not same or not (fails or any(part.lost for part in same)):
                continue
            named = diagnosis if fails else diagnoses.sources.KAFKA_SKIPS
            yield Finding(named, self.folder, self._build_detail(same), self._advise(diagnosis, same))

    def _build_detail(self, same: Sequence[PartOutlook]) -> str:
        worst = max(same, key=lambda part: (part.fate.fails, part.lost, part.waiting))
        others = len(same) - 1
        more = f"; and {plural(others, 'partition')} more" if others else ""
        lost = sum(part.lost for part in same)
        cost = f"; failOnDataLoss=false never reads {plural(lost, 'offset')}" if lost and worst.fate.fails else ""
        return f"{_describe_partition(worst)}{more}{cost}"

    def _advise(self, diagnosis: Diagnosis, same: Sequence[PartOutlook]) -> Advice:
        if diagnosis is diagnoses.sources.KAFKA_NO_TOPIC:
            return self._advise_missing(same)
        if all(part.later for part in same):
            return self._advise_later(same)
        return self._advise_planned(same) if self.again else self._advise_new(same)

    def _advise_later(self, same: Sequence[PartOutlook]) -> Advice:
        """Advise where the batch fails that comes after a planned one, which still runs."""
        fates = {part.fate for part in same}
        run = BOOK.text("kafka_is_skipped" if self.passed else "kafka_still_runs", batch=self.number)
        moved = self._set_to(after=True)
        if fates == {Fate.LOOKS_RECREATED}:
            return BOOK.advise("kafka_run_then_begin", run=run, **moved).lead(BOOK.text("kafka_unless_recreated"))
        then = BOOK.text("kafka_begin_at_new" if fates <= set(RECREATED) else "kafka_move_past")
        return BOOK.advise("kafka_run_then_move", run=run, then=then, **moved)

    def _advise_missing(self, same: Sequence[PartOutlook]) -> Advice:
        """Advise on a topic that is not there: it is created again, or given up if there are others."""
        topics = {part.topic for part in same}
        name = "kafka_missing_passed" if self.passed else "kafka_missing_planned" if self.again else "kafka_missing"
        rest = self._apply(topics)
        advice = BOOK.advise(name, batch=self.number, rest=rest, **self._set_to(topics))
        if not topics < {part.topic for part in self.parts}:
            return advice
        *others, move = advice.steps
        return Advice((*others, move.or_(*BOOK.advise("kafka_give_up", rest=rest, **self._set_to()).steps)))

    def _apply(self, topics: Set[str]) -> Words:
        """Say when to apply a plan; with rows that a left out batch has of other topics: a sink may have them."""
        ends: dict[str, dict[str, int]] = {}
        for part in self.parts:
            if self.again and part.topic not in topics and part.fate is Fate.CONTINUES and part.end is not None:
                ends.setdefault(part.topic, {})[str(part.part[1])] = part.end
        json_ends = Code(json.dumps(ends, separators=(",", ":"))[1:-1])
        return BOOK.text("kafka_others_before_start" if ends else "before_start", batch=self.number, ends=json_ends)

    def _advise_planned(self, same: Sequence[PartOutlook]) -> Advice:
        """Advise on a batch that was planned before, whose range cannot be moved."""
        topics = {part.topic for part in self.parts if part.fate in RECREATED}
        if not topics:
            advice = BOOK.advise("kafka_read_the_rest", gone=_describe_gone(self.parts), batch=self.number)
            gone = any(part.now and part.end is not None and part.now.earliest > part.end for part in same)
            return advice + BOOK.advise("kafka_move_on", **self._set_to(after=True)) if gone else advice
        advice = BOOK.advise("kafka_skip_recreated", batch=self.number, rest=self._apply(topics), **self._set_to())
        certain = any(part.fate in _CERTAIN for part in self.parts)
        return advice if certain else advice.lead(BOOK.text("kafka_unless_recreated"))

    def _advise_new(self, same: Sequence[PartOutlook]) -> Advice:
        names = {_MOVES.get(part.fate, "kafka_ends_earlier") for part in same}
        name = names.pop() if len(names) == 1 else "kafka_ends_earlier"
        left = plural(sum(part.lost for part in same), "unread offset")
        return BOOK.advise(name, gone=_describe_gone(same), left=left, **self._set_to())

    def _set_to(self, created: Set[str] = frozenset(), *, after: bool = False) -> dict[str, Any]:
        """Give the parts of advice that moves the end of the latest batch to what can be read of each partition.

        Topics that are missing are taken out, or start over where somebody has ``created`` them again. ``after``: once
        the planned batch has run.
        """
        after = after or self.passed
        recreated = {part.topic for part in self.parts if part.fate in RECREATED}
        topics: dict[str, dict[str, int | None]] = {}
        for part in self.parts:
            (topic, number), now = part.part, part.now
            at = part.begin if part.fate is Fate.CONTINUES and topic not in recreated else now.earliest if now else None
            if after and now is not None and topic not in recreated:
                at = max(part.begin if part.end is None else part.end, now.earliest)
            if part.fate is Fate.NOT_SUBSCRIBED:
                at = None
            if topic in created:
                at = 0
            if at is not None or part.start is not None or part.end is not None:
                topics.setdefault(topic, {})[str(number)] = at
        return move_end(self.index, topics)


def _describe_gone(parts: Sequence[PartOutlook]) -> Words:
    gone = sum(part.lost for part in parts)
    return BOOK.text("kafka_one_gone" if gone == 1 else "kafka_gone", count=plural(gone, "offset"))


def _describe_partition(part: PartOutlook) -> str:
    name, now = f"{part.topic}/{part.part[1]}", part.now
    match part.fate:
        case Fate.NO_TOPIC:
            return f"there is no topic {part.topic}"
        case Fate.NOT_SUBSCRIBED:
            return f"{name} is not in the subscription; {plural(part.lost, 'offset')} of it unread"
    if now is None:
        return f"{name} no longer exists"
    has = f"{name} has offsets {now.earliest} to {now.latest}"
    match part.fate:
        case Fate.ADDED_LATE:
            return f"{name} is new, and its first {plural(now.earliest, 'offset')} are already gone"
        case Fate.WAITS:
            return f"{has}, but the batch reads {part.start} to {part.end}: a start waits, and then fails"
        case Fate.LOOKS_RECREATED if now.younger:
            younger = now.younger
            return f"{has}; {younger.offset} was written after batch {younger.batch} had read up to {part.start}"
        case Fate.LOOKS_RECREATED:
            return f"{has}, and another partition shows that its topic was recreated"
    return f"{has}, but the next batch starts at {part.begin}"
