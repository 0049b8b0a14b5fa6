"""The texts of handoffs and migrations: ``words.toml``."""

from ckpt.advice.book import Book

BOOK = Book("ckpt.migrate", "words.toml", {})
