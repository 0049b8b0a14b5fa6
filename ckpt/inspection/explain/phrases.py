"""Words of a message with gaps, found in a line in time linear in its length."""

import re
from functools import cached_property

_GAP = "{}"
_NUMBER = "{n}"
_END = "{end}"


class Phrase:
    """``batch {n} doesn't exist``: fixed words, ``{n}`` a number, ``{}`` any text in between, ``{end}`` the end."""

    def __init__(self, text: str) -> None:
        """``text`` has fixed words in front of its first ``{n}`` and around each ``{}``; ``{end}`` may be its last."""
        self.text = text
        self._ends = text.endswith(_END)
        self._parts = [part for part in text.removesuffix(_END).split(_GAP) if part]

    @cached_property
    def anchor(self) -> str:
        """The longest run of fixed words: a line without it does not match."""
        return max((run for part in self._parts for run in part.split(_NUMBER)), key=len)

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        patterns = [r"-?\d+".join(map(re.escape, part.split(_NUMBER))) for part in self._parts]
        return [re.compile(pattern + r"\s*$" * (self._ends and pattern is patterns[-1])) for pattern in patterns]

    def is_in(self, line: str) -> bool:
        """Tell whether the line has all parts in their order: the first place of each is enough, as gaps are free."""
        at = 0
        for pattern in self._patterns:
            match = pattern.search(line, at)
            if match is None:
                return False
            at = match.end()
        return True
