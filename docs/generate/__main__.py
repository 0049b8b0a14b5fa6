"""Write all pages."""

from .api import api_page
from .bugs import bugs_page
from .commands import commands_page
from .contract import CONTRACT, contract_page
from .errors import errors_page
from .findings import findings_page
from .man import man_pages
from .pictures import take_pictures
from .places import DEPLOY, DOCS, MAN
from .sessions import AT_ROOT, RUNBOOK, at_root, runbook
from .shipped import shipped_files
from .sql import PAGE as SQL, sql_page

PAGES = {
    DOCS / "findings.md": findings_page,
    DOCS / "errors.md": errors_page,
    DOCS / "known-bugs.md": bugs_page,
    DOCS / "api.md": api_page,
    DOCS / "commands.md": commands_page,
    CONTRACT: contract_page,
    SQL: sql_page,
    **{page: lambda page=page: at_root(page) for page in AT_ROOT},
    RUNBOOK: runbook,
}

for page, make in PAGES.items():
    page.write_text(make(), encoding="utf-8")
manuals = man_pages()
for page in {*MAN.glob("*.1")} - {MAN / name for name in manuals}:
    page.unlink()
for name, text in manuals.items():
    (MAN / name).write_text(text, encoding="utf-8")
for name, text in shipped_files().items():
    (DEPLOY / name).write_text(text, encoding="utf-8")
take_pictures()
