.PHONY: help check test docs
help:  ## what each target does
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'
check:  ## style, types and layers
	ruff format --check .
	ruff check .
	mypy
	PYTHONPATH=. lint-imports
test: check  ## everything CI runs
	pytest
docs:  ## write the generated pages (findings, samples) again
	python docs/generate.py
