"""What a notebook shows of a value that ckpt returns."""

from importlib import import_module


class InNotebook:
    """Shown as HTML by Jupyter and its kin, if the extra ``html`` is installed; otherwise as any other value."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        html = import_module("ckpt.webpage.notebooks")  # above what it shows, and not needed by anybody else
        shown: str | None = html.part_of(self)
        return shown
