"""Recorded settings: which of a session's settings a restart takes, and which it silently takes from the offset log.

``OffsetSeqMetadata.setSessionConf``: what the log records overrides the session, and for some settings that an older
log lacks the value of that older Spark does.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from ckpt import settings
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.formats.names import parse_java_int
from ckpt.formats.text import trimmed
from ckpt.texts import mask_secrets
from ckpt.versions import MINORS, RECORDED, Recorded, Spark


class SettingUse(StrEnum):
    """Where a restart takes the value of a setting from."""

    SESSION = "session"  # as given: the offset log does not record it
    SAME = "same"  # the offset log records the same
    RECORDED = "recorded"  # the offset log has another value, and that is used
    OLD_DEFAULT = "old-default"  # the offset log has none, and the default of older versions is used


@dataclass(frozen=True, slots=True)
class SettingOutlook:
    """A setting of the session, and what a restart uses."""

    name: str
    given: Annotated[str | None, "null: the value is not shown, because the setting does not belong to `spark.sql`"]
    used: Annotated[str | None, "the value that a restart uses"]
    use: Annotated[
        SettingUse,
        "`recorded`: Spark silently keeps the value in the log; `old-default`: the log is older than the setting",
    ]


def setting_outlooks(checkpoint: Checkpoint, spark: Spark, session: Mapping[str, str]) -> tuple[SettingOutlook, ...]:
    """Each setting that is given, in the order of the table of recorded ones, then by name; pure."""
    uses, recorded, state = effective_settings(checkpoint, spark), {*checkpoint.conf}, checkpoint.state
    logged = recorded_settings_of(checkpoint) is not None
    if logged and state and state.operators and not spark.rules.takes_state_format:
        uses[settings.CHECKPOINT_FORMAT] = str(state.format_version)  # which Spark 4.3 takes though it is not recorded
        recorded.add(settings.CHECKPOINT_FORMAT)
    known = [setting.name for setting in RECORDED if setting.known_to(spark) and setting.name in session]
    names = [*known, *sorted(session.keys() - set(known))]
    return tuple(_foresee(name, session[name], uses.get(name), recorded=name in recorded) for name in names)


def _foresee(name: str, value: str, used: str | None, *, recorded: bool) -> SettingOutlook:
    if used is None:
        shown = mask_secrets(f"{name}={value}").partition("=")[2] if name.startswith("spark.sql.") else None
        return SettingOutlook(name, shown, shown, SettingUse.SESSION)
    if used == value:
        return SettingOutlook(name, value, value, SettingUse.SAME)
    return SettingOutlook(name, value, used, SettingUse.RECORDED if recorded else SettingUse.OLD_DEFAULT)


def find_refused(checkpoint: Checkpoint, spark: Spark) -> Iterator[tuple[str, str]]:
    """Yield the recorded settings, with their values, that a start cannot put into its session.

    ``SQLConf.setConfString`` checks the type and the value of each setting that this version knows.
    """
    for setting in RECORDED:
        value = checkpoint.conf.get(setting.name)
        if value is not None and setting.known_to(spark) and not _accepts(setting, value):
            yield setting.name, value


def _accepts(setting: Recorded, value: str) -> bool:
    if setting.takes is None:
        return True
    if isinstance(setting.takes, range):
        number = parse_java_int(trimmed(value))
        return number is not None and number in setting.takes
    return trimmed(value).lower() in setting.takes


def recorded_settings_of(checkpoint: Checkpoint) -> Mapping[str, str] | None:
    """Return the settings of the newest offsets; None where there are none, and so nothing overrides the session."""
    newest = checkpoint.offsets.newest
    return newest.metadata.conf if newest and newest.metadata else None


def effective_settings(checkpoint: Checkpoint, spark: Spark) -> dict[str, str]:
    """Return the settings that every restart of a checkpoint uses, whatever the session has."""
    recorded = recorded_settings_of(checkpoint)
    if recorded is None:
        return {}
    known = (setting for setting in RECORDED if setting.known_to(spark))
    values = {setting.name: recorded.get(setting.name, setting.absent) for setting in known}
    return {name: value for name, value in values.items() if value is not None}


def bound_writer(recorded: Collection[str]) -> tuple[str, str | None]:
    """The oldest and the newest minor version that can have recorded just these settings; None: none is too new."""
    oldest = max((MINORS.index(s.since) for s in RECORDED if s.name in recorded), default=MINORS.index("2.1"))
    missing = (MINORS.index(s.always or s.since) for s in RECORDED if s.name not in recorded)
    newer = min((rank for rank in missing if rank > oldest), default=None)
    return MINORS[oldest], None if newer is None else MINORS[newer - 1]


def name_versions(oldest: str | None, newest: str | None) -> str:
    """Name a range of minor versions: ``Spark 3.3 to 3.5``, ``Spark 4.2 or later``; empty where it is not known."""
    if oldest is None or newest is None:
        return "" if oldest is None else f"Spark {oldest} or later"
    between = MINORS.index(newest) - MINORS.index(oldest)
    return f"Spark {oldest}" if not between else f"Spark {oldest} {'or' if between == 1 else 'to'} {newest}"
