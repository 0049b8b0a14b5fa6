"""The texts of ``ckpt evolve``: ``words.toml``."""

from ckpt.advice.book import Book

BOOK = Book("ckpt.changes.evolve", "words.toml", {})
