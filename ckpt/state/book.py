"""The texts of state that is read or exported: ``words.toml``."""

from ckpt.advice.book import Book

BOOK = Book("ckpt.state", "words.toml", {})
