VENV ?= .venv
BIN := $(VENV)/bin
SAMPLE ?= sample_checkpoints/async-kafka-4.2

QUICK := not spark and not service and not slow
ALONE := { echo 'Failed beside others; once more, alone:'; $(BIN)/pytest --last-failed --last-failed-no-failures none; }
# Each of the many processes that the tests start would otherwise compile the project again.
quick test: export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup demo check site quick test azure dist zipapp matrix changelog audit lock deploy-check docs runbooks
help:  ## what each target does
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'
setup: $(VENV)/installed  ## a virtual environment with ckpt, Spark, Delta and the development tools
$(VENV)/installed: pyproject.toml
	python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --editable '.[delta,native,sql]' --group dev
	touch $@
demo: setup  ## set up, and inspect a bundled checkpoint that will not restart
	$(BIN)/ckpt inspect $(SAMPLE) || test $$? -eq 1
check: setup site  ## style, types, layers, names, and the links of the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/pytest --quiet tests/laws/test_names.py
site: setup  ## the documentation as a site: site/index.html
	PYTHONPATH=. $(BIN)/zensical build --strict
quick: setup  ## the tests that start no JVM and no service and are not slow, in parallel: two minutes on two cores
	$(BIN)/pytest --numprocesses auto --dist worksteal -m "$(QUICK)"
test: check quick  ## everything that CI runs; what needs no JVM first: an active session would change what it sees
	$(BIN)/pytest --numprocesses auto --dist worksteal -m "slow and not spark and not service" || $(ALONE)
	$(BIN)/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 25 --durations-min 5 \
		-m "spark or service" || $(ALONE)
azure: setup  ## those of the tests that are on Azure Blob Storage: Azurite, installed with npm at the first time
	$(BIN)/pytest -m service -k azure --durations 5
.venv-release/installed: pyproject.toml
	python3 -m venv .venv-release
	.venv-release/bin/pip install --quiet --upgrade 'pip>=25.1'
	.venv-release/bin/pip install --quiet --group release --group checks
	touch $@
dist: .venv-release/installed  ## sdist and wheel in dist/, built twice and compared
	.venv-release/bin/python deploy/build.py
zipapp: dist  ## ckpt as one file for this system and Python, which needs no network: dist/ckpt.pyz
	.venv-release/bin/shiv --quiet --reproducible --compile-pyc --console-script ckpt --python '/usr/bin/env python3' \
		--output-file dist/ckpt.pyz "$$(ls dist/*.whl)[native,html,sql,kafka,hdfs]"
matrix: dist  ## the wheel with each extra, on each Python that is here
	.venv-release/bin/python deploy/matrix.py
changelog: .venv-release/installed  ## put the files of changelog.d/ into CHANGELOG.md, under the version of pyproject.toml
	.venv-release/bin/towncrier build --yes --version "$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)"
audit: .venv-release/installed  ## ask the advisory database of PyPI about the pinned dependencies
	.venv-release/bin/pip-audit --requirement deploy/lock.txt --disable-pip --require-hashes
lock: .venv-release/installed  ## pin the dependencies anew, with hashes: deploy/lock.txt
	.venv-release/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
		--generate-hashes --all-extras --group dev --output-file deploy/lock.txt pyproject.toml
deploy-check: .venv-release/installed  ## the files of deploy/ by the checkers of their kinds
	.venv-release/bin/hadolint deploy/Dockerfile deploy/Dockerfile.spark
	.venv-release/bin/shellcheck deploy/try_image.sh .ci/run
	.venv-release/bin/kubernetes-validate --strict deploy/kubernetes/*.yaml
docs: setup  ## regenerate the documentation that needs no JVM, with its picture if Chromium is installed
	$(BIN)/python -m docs.generate
	$(BIN)/python -m tests.commands.contract
	$(BIN)/python -m tests.changes.relocate.runbook
runbooks: docs  ## regenerate what the runbooks show of Spark (needs Java, npm and Maven, which brings Kafka; takes minutes)
	$(BIN)/python -m tests.changes.fixes.async_gap.runbook
	$(BIN)/python -m tests.migrate.runbook
	$(BIN)/python -m tests.new.copy.move_runbook
	$(BIN)/python -m tests.migrate.transform_runbook
