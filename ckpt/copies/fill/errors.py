"""Why rows cannot be state."""


class Misfit(Exception):
    """A row, by its place in what was given, and what is wrong with it; None where it is all of them."""

    def __init__(self, row: int | None, why: str, other: int | None = None) -> None:
        """Rows are named by who knows where they came from; ``why`` ends in "that of" if there is another row."""
        super().__init__(why)
        self.row, self.why, self.other = row, why, other
