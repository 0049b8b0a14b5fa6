"""What ckpt found, as HTML: a page that needs nothing else, or a part of one for a notebook."""

from ckpt.html.parts import inspection_page
from ckpt.html.templates import document_page

__all__ = ["document_page", "inspection_page"]
