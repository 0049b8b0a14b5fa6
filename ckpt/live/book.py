"""The texts of sources that were asked: ``words.toml``."""

from ckpt.advice.book import Book
from ckpt.restart.book import BOOK as OF_RESTART

BOOK = Book("ckpt.live", "words.toml", OF_RESTART.parts)
