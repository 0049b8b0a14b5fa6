"""The texts of ``ckpt evolve``: ``words.toml``."""

from ckpt.advice import Option, Words
from ckpt.advice.book import Book

BOOK = Book("ckpt.new.evolve", "words.toml", {})


def ask_old(option: str, new: int | str, old: str = "OLD") -> Words:
    """Ask somebody for the old one that a new one is: ``option`` takes the answer."""
    return BOOK.text("evolve_ask_old", of_old=Option(option, f"{old}={new}"), of_none=Option(option, f"-={new}"))
