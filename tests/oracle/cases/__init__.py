"""The cases of the oracle, as data: which sample is damaged how, and which query is started on it."""

from __future__ import annotations

from . import logs, random_gaps, state
from .model import SAMPLES, Case

CASES: tuple[Case, ...] = (*logs.gaps(), *random_gaps.cases(), *logs.damage(), *state.cases())

__all__ = ["CASES", "SAMPLES", "Case"]
