# make test   set up and run every test        make demo   set up, run the main job
# make check  ruff, mypy, import layers        make docs   the site, in build/docs
# make dist   wheel and sdist                  make release-check  the wheel in an empty environment
# make sbom   what the environment is made of  make clean  forget the environment
# make advisories  known weaknesses of the pinned versions
# make house  the size of the code, and what the main calls run through
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Two test processes with one thread each: more torch threads than free cores is slower, not faster.
export OMP_NUM_THREADS ?= 1
# The tests start many processes: each would compile the package again where the system forbids to keep the result.
export PYTHONDONTWRITEBYTECODE :=

# Plugins of pytest that no test here needs, and that do something around each of thousands.
UNUSED := -p no:logging -p no:anyio -p no:stepwise -p no:setuponly -p no:setupplan -p no:pastebin

.PHONY: setup test demo check docs browser house dist release-check release-check-all sbom advisories clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt hashes.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement hashes.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,docs,boosting,fast,graphs,mlflow,onnx,report,scale,serve,sign,skops,torch]"
	touch $@

test: $(READY) browser
	$(BIN)/python -m pytest -n 2 --dist worksteal -q $(UNUSED)

# The page is tested in a real Chromium: found, or installed where that is possible, else those tests are skipped.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	  echo "No Chromium and no way to install it: the browser tests will be skipped."
	@test -f node_modules/axe-core/axe.min.js || \
	  { command -v npm >/dev/null && npm install --silent --no-save --no-package-lock --prefix . axe-core@4 >/dev/null; } || \
	  echo "No axe-core and no npm to install it: the tests of accessibility will be skipped."

demo: $(READY)
	$(BIN)/likewise demo

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

house: $(READY)
	$(BIN)/python benchmarks/house.py

# Nothing is fetched; a warning is an error, and so is a link inside the site that leads nowhere.
docs: $(READY)
	rm -rf build/docs
	$(BIN)/python -m sphinx -b html -n -W --keep-going -q docs build/docs
	$(BIN)/python docs/extensions/built_links.py build/docs

# Without isolation: the build needs setuptools alone, and must not fetch what the package needs.
dist: $(READY)
	rm -rf build dist
	$(BIN)/python -m build --no-isolation
	@ls -l dist

release-check: dist
	$(BIN)/python tests/install/release_check.py dist/*.whl

release-check-all: dist
	$(BIN)/python tests/install/release_check.py dist/*.whl --all

sbom: $(READY)
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --output-file dist/likewise.cdx.json $(BIN)/python

# Asks a service on the network about the pinned versions; builds that only torch's index has are unknown to it.
advisories: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip-audit
	grep -v '+' constraints.txt | $(BIN)/python -m pip_audit --no-deps --disable-pip --requirement /dev/stdin

clean:
	rm -rf $(VENV)
