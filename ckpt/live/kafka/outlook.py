"""What the next start makes of a Kafka source that was asked: findings, and what to do about them."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ckpt.live.kafka.rules import outlooks, words
from ckpt.live.outlook import NOT_IN_LOG, RECREATED, Fate, PartOutlook, SourceOutcome, SourceOutlook, Stop
from ckpt.live.records import KafkaNow, LiveSource
from ckpt.restart import diagnoses
from ckpt.restart.findings import Diagnosis, Finding
from ckpt.restart.forecast import Forecast, Outcome, SourceRange
from ckpt.texts import plural, quoted

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
_CERTAIN = (Fate.ENDS_EARLIER, Fate.WAITS, Fate.GONE)
_ALWAYS_FAILS = {False: Fate.NO_TOPIC, True: Fate.GONE}
"""With ``failOnDataLoss=false`` too: in a new batch, and in one that was planned."""


def kafka_outlook(
    start: Forecast, source: LiveSource, reading: SourceRange, now: KafkaNow, *, passed: bool = False
) -> SourceOutlook:
    """One Kafka source and the next start; pure. ``passed``: the sink has the planned batch, and no task reads it."""
    parts = outlooks(reading, now, passed=passed)
    if parts is None:
        return SourceOutlook(source, said=NOT_IN_LOG)
    found = tuple(_Judge(start, reading, now, parts, passed).findings())
    outcome = _outcome(parts, now, again=bool(start.reexecutes) and not passed)
    waiting, lost = sum(one.waiting for one in parts), sum(one.lost for one in parts)
    stop = _stop(start, now, parts, found)
    return SourceOutlook(source, outcome, _said(parts), parts, found, waiting, None, lost, stop)


def _stop(start: Forecast, now: KafkaNow, parts: Sequence[PartOutlook], found: Sequence[Finding]) -> Stop | None:
    stopping = tuple(one for one in parts if one.fate.fails and not one.later)
    again = bool(start.reexecutes)
    if not now.fail_on_data_loss:
        stopping = tuple(one for one in stopping if one.fate is _ALWAYS_FAILS[again])
    if not stopping:
        return None
    at_start = not again and any(one.fate is Fate.NO_TOPIC for one in stopping)
    why = {_DIAGNOSES[one.fate] for one in stopping}
    return Stop(
        Outcome.FAILS_AT_START if at_start else Outcome.FAILS_IN_BATCH,
        words(stopping, again=again, rules=start.spark.rules),
        tuple(one for one in found if one.diagnosis in why),
    )


def _outcome(parts: Sequence[PartOutlook], now: KafkaNow, *, again: bool) -> SourceOutcome:
    if any(one.fate.fails if now.fail_on_data_loss else one.fate is _ALWAYS_FAILS[again] for one in parts):
        return SourceOutcome.FAILS
    skips = any(one.lost or one.fate is Fate.NO_TOPIC for one in parts)
    return SourceOutcome.SKIPS if skips else SourceOutcome.CONTINUES


def _said(parts: Sequence[PartOutlook]) -> str:
    waiting, lost, new = sum(one.waiting for one in parts), sum(one.lost for one in parts), _count(parts, Fate.ADDED)
    texts = [f"{plural(waiting, 'offset')} of {plural(len(parts), 'partition')} wait to be read"]
    if new:
        texts.append(f"{plural(new, 'partition')} came, and will be read from the beginning")
    if lost:
        texts.append(f"a start with failOnDataLoss=false would never read {plural(lost, 'offset')}")
    return "; ".join(texts)


def _count(parts: Sequence[PartOutlook], fate: Fate) -> int:
    return sum(one.fate is fate for one in parts)


@dataclass(frozen=True, slots=True)
class _Judge:
    """The findings about one source, one for each diagnosis."""

    start: Forecast
    reading: SourceRange
    now: KafkaNow
    parts: tuple[PartOutlook, ...]
    passed: bool  # the batch that runs again is in the sink, which passes over it

    @property
    def again(self) -> bool:
        return bool(self.start.reexecutes) and not self.passed

    def findings(self) -> Iterator[Finding]:
        path = f"sources/{self.reading.index}"
        certain = {one.part[0] for one in self.parts if one.fate in _CERTAIN}
        found: dict[Diagnosis, list[PartOutlook]] = {diagnosis: [] for diagnosis in _DIAGNOSES.values()}
        for one in self.parts:
            shown = one.fate is Fate.LOOKS_RECREATED and one.part[0] in certain  # by another partition
            if one.fate in _DIAGNOSES:
                found[_DIAGNOSES[Fate.GONE if shown else one.fate]].append(one)
        for diagnosis, same in found.items():
            fails = self.now.fail_on_data_loss or any(
                one.fate in (Fate.NO_TOPIC, _ALWAYS_FAILS[self.again]) for one in same
            )
            if not same or not (fails or any(one.lost for one in same)):
                continue
            detail = self._detail(same)
            if fails:
                yield Finding(diagnosis, path, detail, self._remedy(diagnosis, same))
            else:
                yield Finding(diagnoses.sources.KAFKA_SKIPS, path, detail, self._remedy(diagnosis, same))

    def _detail(self, same: Sequence[PartOutlook]) -> str:
        worst = max(same, key=lambda one: (one.fate.fails, one.lost, one.waiting))
        others = len(same) - 1
        more = f"; and {plural(others, 'partition')} more" if others else ""
        lost = sum(one.lost for one in same)
        cost = f"; failOnDataLoss=false never reads {plural(lost, 'offset')}" if lost and worst.fate.fails else ""
        return f"{_described(worst)}{more}{cost}"

    def _remedy(self, diagnosis: Diagnosis, same: Sequence[PartOutlook]) -> str | None:
        if diagnosis is diagnoses.sources.KAFKA_NO_TOPIC:
            return self._of_missing(same)
        if all(one.later for one in same):
            return self._of_later(same)
        if self.again:
            return self._of_planned(same)
        return f"{self._costs(same)} {self._set()} shows the plan for it. Apply it before the start.".strip()

    def _of_later(self, same: Sequence[PartOutlook]) -> str:
        """For what stops the batch after one that was planned and still runs."""
        fates, batch = {one.fate for one in same}, self.start.batch_id
        runs = "is in the sink already, which passes over it" if self.passed else "still runs"
        first = f"Batch {batch} {runs}: start the query with trigger once, which ends after it."
        plan = "move the query past what is gone, or to take the topic out"
        if fates <= set(RECREATED):
            plan = "begin at the earliest rows of the new topic"
        then = f"Afterwards {self._set(after=True)} shows the plan to {plan}. Apply it before the next start."
        if fates == {Fate.LOOKS_RECREATED}:
            return f"If it was not recreated, start the query as usual. If it was: {first} {then}"
        return f"{first} The batch after it would fail. {then}"

    def _of_missing(self, same: Sequence[PartOutlook]) -> str:
        """For a topic that is not there: it is created again, or given up if there are others."""
        topics = {one.part[0] for one in same}
        lead, first = "Do not start the query.", ""
        if self.passed:
            lead = (
                f"Batch {self.start.batch_id} is in the sink already, which passes over it: start the query with "
                "trigger once, which ends after it, and then not again."
            )
        elif self.again:
            first = f"`ckpt skip {{checkpoint}}` leaves out batch {self.start.batch_id}, which cannot be read; then "
        remedy = (
            f"{lead} Check the brokers and the name. A topic that is created again is empty: then, "
            f"before the start, {first}{self._set(topics)} shows the plan to move the query to its beginning; apply it."
        )
        if topics < {one.part[0] for one in self.parts}:
            remedy += (
                f" To continue without the topic instead, take it out of `subscribe`: {first}{self._set()} shows the "
                "plan to take it out of the checkpoint. Apply it; what was not read of the topic is lost."
            )
        return f"{remedy}{self._of_others(topics)}"

    def _of_others(self, topics: Set[str]) -> str:
        """What a planned batch that is left out had of topics that are still there: a sink may have it."""
        ends: dict[str, dict[str, int]] = {}
        for one in self.parts:
            if self.again and one.part[0] not in topics and one.fate is Fate.CONTINUES and one.end is not None:
                ends.setdefault(one.part[0], {})[str(one.part[1])] = one.end
        if not ends:
            return ""
        text = json.dumps(ends, separators=(",", ":"))[1:-1]
        return (
            f" If the sink has batch {self.start.batch_id} already, as `--sink` tells, its rows of the other topics "
            f"would be in it twice: give {text} for them then."
        )

    def _of_planned(self, same: Sequence[PartOutlook]) -> str:
        """For a batch that was planned before, whose range cannot be moved."""
        batch = self.start.batch_id
        if not any(one.fate in RECREATED for one in self.parts):
            gone = sum(one.lost for one in self.parts)
            then = ""
            if any(one.now and one.end is not None and one.now.earliest > one.end for one in same):
                then = (
                    f" Rows after that batch are gone too: before the next start, {self._set(after=True)} shows the "
                    "plan to begin at the earliest rows that are left. Apply it."
                )
            return (
                f"{plural(gone, 'offset')} are gone for good. Start the query with failOnDataLoss=false and trigger "
                f"once, until batch {batch} is committed: it reads what is left of it. Afterwards leave the option out."
                f"{then}"
            )
        sure = any(one.fate in _CERTAIN for one in self.parts)
        lead = "" if sure else "If it was not recreated, start the query as usual. If it was: "
        return (
            f"{lead}`ckpt skip {{checkpoint}}` leaves out batch {batch}, whose rows are gone. Then {self._set()}: the "
            "query begins at the earliest rows of the new topic, and reads what that batch had of other topics. What "
            "it had of other sources is left out: `ckpt offsets show {checkpoint}` says what that is."
            f"{self._of_others({one.part[0] for one in self.parts if one.fate in RECREATED})}"
        )

    def _costs(self, same: Sequence[PartOutlook]) -> str:
        fates = {one.fate for one in same}
        if fates <= {Fate.EXPIRED, Fate.ADDED_LATE}:
            gone = sum(one.lost for one in same)
            return f"{plural(gone, 'offset')} are gone for good. To begin at the earliest rows that are left,"
        if fates == {Fate.NOT_SUBSCRIBED}:
            left = sum(one.lost for one in same)
            return f"Subscribe to it again; or, to give up its {plural(left, 'offset')} that were not read,"
        if fates == {Fate.LOOKS_RECREATED}:
            return "If it was not recreated, start the query as usual. If it was, to read all its rows,"
        return "To read all rows of the new topic (if it is the old one, that reads rows again),"

    def _set(self, created: Set[str] = frozenset(), *, after: bool = False) -> str:
        """The command that moves the end of the latest batch to what can be read of each partition.

        Topics that are missing are taken out, or start over where somebody has ``created`` them again. ``after``: once
        the planned batch has run.
        """
        after = after or self.passed
        recreated = {one.part[0] for one in self.parts if one.fate in RECREATED}
        topics: dict[str, dict[str, int | None]] = {}
        for one in self.parts:
            (topic, number), now = one.part, one.now
            at = one.begin if one.fate is Fate.CONTINUES and topic not in recreated else now.earliest if now else None
            if after and now is not None and topic not in recreated:
                at = max(one.begin if one.end is None else one.end, now.earliest)
            if one.fate is Fate.NOT_SUBSCRIBED:
                at = None
            if topic in created:
                at = 0
            if at is not None or one.start is not None or one.end is not None:
                topics.setdefault(topic, {})[str(number)] = at
        to = quoted(json.dumps(topics, separators=(",", ":")))
        return f"`ckpt offsets set {{checkpoint}} --source {self.reading.index} --to {to}`"


def _described(one: PartOutlook) -> str:
    """What is wrong with a partition."""
    name, now = f"{one.part[0]}/{one.part[1]}", one.now
    match one.fate:
        case Fate.NO_TOPIC:
            return f"there is no topic {one.part[0]}"
        case Fate.NOT_SUBSCRIBED:
            return f"{name} is not subscribed to; {plural(one.lost, 'offset')} of it were not read"
    if now is None:
        return f"{name} is not there any more"
    has = f"{name} has offsets {now.earliest} to {now.latest}"
    match one.fate:
        case Fate.ADDED_LATE:
            return f"{name} came, and its first {plural(now.earliest, 'offset')} are gone already"
        case Fate.WAITS:
            return f"{has}, and batch reads {one.start} to {one.end}: a start waits, and then fails"
        case Fate.LOOKS_RECREATED if now.younger:
            return f"{has}; {now.younger.offset} was written after batch {now.younger.batch} had read up to {one.start}"
        case Fate.LOOKS_RECREATED:
            return f"{has}, and another partition shows that its topic was created again"
    return f"{has}, and the next batch starts at {one.begin}"
