"""Regenerate the documentation: ``make docs``, from the root of the repository. Starts no JVM.

``docs/findings.md`` comes from ``ckpt.restart.diagnoses``, ``docs/errors.md`` from ``ckpt.inspection.explain``,
``docs/api.md`` from the docstrings of what ``ckpt`` exports; ``docs/commands.md`` and the man pages in ``docs/man``
come from the commands themselves, as ``--help`` does, and the terminals of ``docs/images`` from what they print. In
docs/contract.md the keys of a document come from its dataclass. In README.md, docs and runbooks, the text after
``$ ckpt ...`` in a console block is what that command prints. What async-gap.md shows of Spark comes from a real Kafka
query: ``make runbooks`` writes that.
"""
