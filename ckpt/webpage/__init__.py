"""What ckpt found, as HTML: a page that needs nothing else, or a part of one for a notebook."""

from ckpt.webpage.parts import inspection_page
from ckpt.webpage.templates import document_page

__all__ = ["document_page", "inspection_page"]
