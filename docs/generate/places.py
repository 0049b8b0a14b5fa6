"""Where the pages are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
MAN = DOCS / "man"
DEPLOY = ROOT / "deploy"
