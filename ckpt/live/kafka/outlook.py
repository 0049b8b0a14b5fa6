"""Foresees what the next start makes of a Kafka source that was asked: findings and remedies; pure."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set

from ckpt.live.kafka.rules import find_words, foresee_partitions
from ckpt.live.kind import NextRead
from ckpt.live.outlook import NOT_IN_LOG, RECREATED, Fate, PartOutlook, SourceOutcome, SourceOutlook, Stop, set_command
from ckpt.live.records import KafkaNow
from ckpt.restart import diagnoses
from ckpt.restart.findings import Diagnosis, Finding, Forecast, Outcome
from ckpt.texts import plural

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


def foresee_kafka(start: NextRead, now: KafkaNow) -> SourceOutlook:
    """Foresee what the next start makes of a Kafka source; pure."""
    parts = foresee_partitions(start.range, now, passed=start.passed)
    if parts is None:
        return SourceOutlook(start.source, said=NOT_IN_LOG)
    judge = _Judge(start, now, parts)
    findings, outcome = tuple(judge.find()), _choose_outcome(parts, now, again=judge.again)
    waiting, lost = sum(part.waiting for part in parts), sum(part.lost for part in parts)
    sentence, stop = _describe(parts, waiting, lost), _find_stop(start.forecast, now, parts, findings)
    return SourceOutlook(start.source, outcome, sentence, parts, findings, waiting, None, lost, stop)


def _find_stop(
    start: Forecast, now: KafkaNow, parts: Sequence[PartOutlook], findings: Sequence[Finding]
) -> Stop | None:
    again = bool(start.reexecutes)
    stopping = tuple(part for part in parts if not part.later and _fails(part, now, again=again))
    if not stopping:
        return None
    at_start = not again and any(part.fate is Fate.NO_TOPIC for part in stopping)
    why = {_DIAGNOSES[part.fate] for part in stopping}
    return Stop(
        Outcome.FAILS_AT_START if at_start else Outcome.FAILS_IN_BATCH,
        find_words(stopping, again=again, rules=start.spark.rules),
        tuple(finding for finding in findings if finding.diagnosis in why),
    )


def _fails(part: PartOutlook, now: KafkaNow, *, again: bool) -> bool:
    return part.fate.fails if now.fail_on_data_loss else part.fate is _ALWAYS_FAILS[again]


def _choose_outcome(parts: Sequence[PartOutlook], now: KafkaNow, *, again: bool) -> SourceOutcome:
    if any(_fails(part, now, again=again) for part in parts):
        return SourceOutcome.FAILS
    skips = any(part.lost or part.fate is Fate.NO_TOPIC for part in parts)
    return SourceOutcome.SKIPS if skips else SourceOutcome.CONTINUES


def _describe(parts: Sequence[PartOutlook], waiting: int, lost: int) -> str:
    new = sum(part.fate is Fate.ADDED for part in parts)
    texts = [f"{plural(waiting, 'offset')} of {plural(len(parts), 'partition')} wait to be read"]
    if new:
        texts.append(f"{plural(new, 'new partition')} will be read from the beginning")
    if lost:
        texts.append(f"a start with failOnDataLoss=false would never read {plural(lost, 'offset')}")
    return "; ".join(texts)


class _Judge:
    """Finds what is wrong with one source, one finding for each diagnosis."""

    def __init__(self, start: NextRead, now: KafkaNow, parts: tuple[PartOutlook, ...]) -> None:
        self.now, self.parts, self.index, self.batch = now, parts, start.range.index, start.forecast.batch_id
        self.passed = start.passed  # the batch that runs again is in the sink, which passes over it
        self.again = bool(start.forecast.reexecutes) and not start.passed

    def find(self) -> Iterator[Finding]:
        path = f"sources/{self.index}"
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
            yield Finding(named, path, self._build_detail(same), self._choose_remedy(diagnosis, same))

    def _build_detail(self, same: Sequence[PartOutlook]) -> str:
        worst = max(same, key=lambda part: (part.fate.fails, part.lost, part.waiting))
        others = len(same) - 1
        more = f"; and {plural(others, 'partition')} more" if others else ""
        lost = sum(part.lost for part in same)
        cost = f"; failOnDataLoss=false never reads {plural(lost, 'offset')}" if lost and worst.fate.fails else ""
        return f"{_describe_partition(worst)}{more}{cost}"

    def _choose_remedy(self, diagnosis: Diagnosis, same: Sequence[PartOutlook]) -> str | None:
        if diagnosis is diagnoses.sources.KAFKA_NO_TOPIC:
            return self._advise_missing(same)
        if all(part.later for part in same):
            return self._advise_later(same)
        if self.again:
            return self._advise_planned(same)
        return f"{self._describe_costs(same)} {self._set_to()} shows the plan for it. Apply it before the start."

    def _advise_later(self, same: Sequence[PartOutlook]) -> str:
        """Advise where the batch fails that comes after a planned one, which still runs."""
        fates = {part.fate for part in same}
        runs = "is already in the sink, which skips it" if self.passed else "still runs"
        first = f"Batch {self.batch} {runs}: start the query with trigger once, which ends after it."
        plan = "move the query past what is gone, or to take the topic out"
        if fates <= set(RECREATED):
            plan = "begin at the earliest rows of the new topic"
        then = f"Afterwards {self._set_to(after=True)} shows the plan to {plan}. Apply it before the next start."
        if fates == {Fate.LOOKS_RECREATED}:
            return f"If it was not recreated, start the query as usual. If it was: {first} {then}"
        return f"{first} The batch after it would fail. {then}"

    def _advise_missing(self, same: Sequence[PartOutlook]) -> str:
        """Advise on a topic that is not there: it is created again, or given up if there are others."""
        topics = {part.topic for part in same}
        lead, first = "Do not start the query.", ""
        if self.passed:
            lead = (
                f"Batch {self.batch} is already in the sink, which skips it: start the query with "
                "trigger once, which ends after it, and then not again."
            )
        elif self.again:
            first = f"`ckpt skip {{checkpoint}}` leaves out batch {self.batch}, which cannot be read; then "
        remedy = (
            f"{lead} Check the brokers and the name. A topic that is created again is empty: then, before the start, "
            f"{first}{self._set_to(topics)} shows the plan to move the query to its beginning; apply it."
        )
        if topics < {part.topic for part in self.parts}:
            remedy += (
                f" To continue without the topic instead, take it out of `subscribe`: {first}{self._set_to()} shows "
                "the plan to take it out of the checkpoint. Apply it; what was not read of the topic is lost."
            )
        return f"{remedy}{self._advise_others(topics)}"

    def _advise_others(self, topics: Set[str]) -> str:
        """Give rows that a planned batch has of other topics, if it is left out: a sink may have them."""
        ends: dict[str, dict[str, int]] = {}
        for part in self.parts:
            if self.again and part.topic not in topics and part.fate is Fate.CONTINUES and part.end is not None:
                ends.setdefault(part.topic, {})[str(part.part[1])] = part.end
        if not ends:
            return ""
        text = json.dumps(ends, separators=(",", ":"))[1:-1]
        return (
            f" If the sink already has batch {self.batch} (`--sink` shows it), its rows of the other topics "
            f"would be written twice: in that case give {text} for them."
        )

    def _advise_planned(self, same: Sequence[PartOutlook]) -> str:
        """Advise on a batch that was planned before, whose range cannot be moved."""
        batch = self.batch
        if not any(part.fate in RECREATED for part in self.parts):
            gone = sum(part.lost for part in self.parts)
            then = ""
            if any(part.now and part.end is not None and part.now.earliest > part.end for part in same):
                then = (
                    f" Rows after that batch are gone too: before the next start, {self._set_to(after=True)} shows the "
                    "plan to begin at the earliest rows that are left. Apply it."
                )
            return (
                f"{plural(gone, 'offset')} are gone for good. Start the query with failOnDataLoss=false and trigger "
                f"once, until batch {batch} is committed: it reads what is left of it. Afterwards leave the option out."
                f"{then}"
            )
        sure = any(part.fate in _CERTAIN for part in self.parts)
        lead = "" if sure else "If it was not recreated, start the query as usual. If it was: "
        return (
            f"{lead}`ckpt skip {{checkpoint}}` leaves out batch {batch}, whose rows are gone. Then {self._set_to()}: "
            "the query begins at the earliest rows of the new topic, and reads what that batch had of other topics. "
            "What it had of other sources is left out: `ckpt offsets show {checkpoint}` says what that is."
            f"{self._advise_others({part.topic for part in self.parts if part.fate in RECREATED})}"
        )

    def _describe_costs(self, same: Sequence[PartOutlook]) -> str:
        fates = {part.fate for part in same}
        if fates <= {Fate.EXPIRED, Fate.ADDED_LATE}:
            gone = sum(part.lost for part in same)
            return f"{plural(gone, 'offset')} are gone for good. To begin at the earliest rows that are left,"
        if fates == {Fate.NOT_SUBSCRIBED}:
            left = sum(part.lost for part in same)
            return f"Subscribe to it again; or, to give up its {plural(left, 'offset')} that were not read,"
        if fates == {Fate.LOOKS_RECREATED}:
            return "If it was not recreated, start the query as usual. If it was, to read all its rows,"
        return "To read all rows of the new topic (if it is the old one, that reads rows again),"

    def _set_to(self, created: Set[str] = frozenset(), *, after: bool = False) -> str:
        """Build the command that moves the end of the latest batch to what can be read of each partition.

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
        return set_command(self.index, topics)


def _describe_partition(part: PartOutlook) -> str:
    """Describe what is wrong with a partition."""
    name, now = f"{part.topic}/{part.part[1]}", part.now
    match part.fate:
        case Fate.NO_TOPIC:
            return f"there is no topic {part.topic}"
        case Fate.NOT_SUBSCRIBED:
            return f"{name} is not subscribed to; {plural(part.lost, 'offset')} of it were not read"
    if now is None:
        return f"{name} no longer exists"
    has = f"{name} has offsets {now.earliest} to {now.latest}"
    match part.fate:
        case Fate.ADDED_LATE:
            return f"{name} is new, and its first {plural(now.earliest, 'offset')} are already gone"
        case Fate.WAITS:
            return f"{has}, and batch reads {part.start} to {part.end}: a start waits, and then fails"
        case Fate.LOOKS_RECREATED if now.younger:
            younger = now.younger
            return f"{has}; {younger.offset} was written after batch {younger.batch} had read up to {part.start}"
        case Fate.LOOKS_RECREATED:
            return f"{has}, and another partition shows that its topic was created again"
    return f"{has}, and the next batch starts at {part.begin}"
