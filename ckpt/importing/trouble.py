"""Why rows cannot be state."""


class Misfit(Exception):
    """A row, by its place in what was given, and what is wrong with it; None where it is all of them."""

    def __init__(self, row: int | None, why: str) -> None:
        """Both, to be named by who knows where the row came from."""
        super().__init__(why)
        self.row, self.why = row, why
