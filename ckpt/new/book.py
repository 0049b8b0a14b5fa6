"""The texts of copies and rewrites: ``words.toml``."""

from ckpt.advice.book import Book

BOOK = Book("ckpt.new", "words.toml", {})
