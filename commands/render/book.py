"""The texts of pages: ``words.toml``."""

from ckpt.advice.book import Book
from ckpt.restart.book import BOOK as OF_RESTART

BOOK = Book(__package__, "words.toml", OF_RESTART.parts)
