"""The texts of plans: ``words.toml``."""

from ckpt.advice.book import Book
from ckpt.restart.book import BOOK as OF_RESTART

BOOK = Book("ckpt.changes", "words.toml", OF_RESTART.parts)
