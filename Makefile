# Two commands: `make lab` opens the course, `make test` runs every test. Paths are relative and every tool is called as
# `python -m …`, because a script's first line cannot name an interpreter in a path with a space.

SHELL := /bin/bash
.DELETE_ON_ERROR:
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# The first that runs: a version manager can leave a command of a version that is not there.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
  "$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$p" && break; done)
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
# Processes that tests are dealt to; with 0 they run in pytest's own, where a debugger works.
JOBS ?= 2
LESSON ?= en/index.ipynb
# Holds the folder that it was made in: what is installed points there, and a folder can be moved.
READY := .venv/.ready
ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help lab test course course-times site words clean

help:
	@echo "make lab     open the course in JupyterLab (LAB_ARGS=--no-browser on a server)"
	@echo "make test    run every test (TEST_ARGS=tests/course for some of them, JOBS=4 on more cores)"
	@echo "make course  rebuild the notebooks from course/src"
	@echo "make course-times  measure how long each lesson runs, for its head; takes minutes"
	@echo "make site    write the course as pages for any web server, into site; runs every lesson (SITE_ARGS=--only 02)"
	@echo "make words   bring the message catalogues up to date, for translators (docs/translating.md)"
	@echo "make clean   delete the environment and what tests left behind"

# Made once, and again when what it is made from has changed or the folder was moved.
ifneq ($(shell test -e $(READY) && { test "$$(cat $(READY))" = "$$PWD" || echo moved; }),)
.PHONY: $(READY)
endif
$(READY): pyproject.toml constraints.txt
	@if [ -z "$(PYTHON)" ]; then \
	  found=`python3 -V 2>/dev/null`; \
	  echo "Python 3.11 or newer is needed; $${found:-no Python} was found. Install it, or say make PYTHON=/path/to/python3.11."; \
	  exit 1; fi
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || \
	  { echo "$(PYTHON) is `"$(PYTHON)" -V`; Python 3.11 or newer is needed. Say make PYTHON=/path/to/python3.11."; exit 1; }
	@echo "==> Making a virtual environment in .venv with `"$(PYTHON)" -V`"
	@"$(PYTHON)" -m venv .venv || \
	  { echo "The virtual environment could not be made. On Debian and Ubuntu: apt-get install python3-venv."; exit 1; }
	@echo "==> Installing the tested edition (constraints.txt); the first time this takes a few minutes"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]"
	@echo "$$PWD" > $(READY)

# With the graded questions here, the service that judges them runs as long as the lab; without, or if it fails, the lab alone.
lab: $(READY)
	@echo "==> Opening JupyterLab in the course folder$(if $(ROOT), as root); stop it with Ctrl-C here"
	@cd course && ../$(BIN)/python -m quizzes.service.lab -m jupyterlab --ServerApp.root_dir="$$PWD" $(LESSON) $(ROOT) $(LAB_ARGS)

test: $(READY)
	@echo "==> Running all tests"
	@$(BIN)/python -m pytest -n $(JOBS) $(TEST_ARGS)

course: $(READY)
	@echo "==> Building the notebooks from course/src"
	@$(BIN)/python -m course.build

course-times: $(READY)
	@echo "==> Running every lesson, timed"
	@$(BIN)/python -m course.times $(TIMES_ARGS)

site: $(READY)
	@echo "==> Running the lessons and writing their pages"
	@$(BIN)/python -m course.site $(SITE_ARGS)

words: $(READY)
	@echo "==> Gathering every text into course/locale"
	@$(BIN)/python -m course.words

clean:
	@echo "==> Deleting .venv, test-artifacts and caches"
	@rm -rf .venv test-artifacts .pytest_cache .ruff_cache .hypothesis *.egg-info
