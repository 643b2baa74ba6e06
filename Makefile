# make demo and make test set up everything they need in .venv. Nothing outside this folder changes, with one exception, which is
# announced: root on Debian or Ubuntu gets python3-venv when it is missing.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := fixtures/hosts/2.3-sync-disabled-local.zaudit

.PHONY: help demo test documents fleet-test quick coverage corpus pythons mutants check new-rule new-source prove-read-only fuzz chance compiled bench bench-short bench-fleet zipapp recorder dist deb site lab lab-verify lab-test lab-record lab-ansible lab-service lab-key-unit lab-diagnose powercut powercut-events powercut-report points points-kernel points-quick points-torn clean

help:
	@echo "make demo     audit the pools of this machine, or a recording of a virtual machine when there are none"
	@echo "make test     all tests"
	@echo "make fleet-test  tests of the fleet with Dask, DuckDB, Parquet and S3 (700 MB), without which most are skipped"
	@echo "make documents  the command blocks of README and docs, as printed (root)"
	@echo "make quick    those that one runs before each commit: a minute on two cores"
	@echo "make check    mypy --strict, ruff"
	@echo "make coverage all tests, and which lines none of them reaches"
	@echo "make pythons  the quick tests with every Python from 3.11 to 3.14 that is found here"
	@echo "make mutants  SAMPLE=100 small mistakes in auditor/judge/: do the tests notice?"
	@echo "make chance   the property tests with examples that no run before had"
	@echo "make fuzz     lost and hostile answers and names for MINUTES=2, from SEED=1; what it finds is kept for the tests"
	@echo "make prove-read-only  every system call of a check and a record as root, judged and counted (root, strace)"
	@echo "make bench-short  speed against a frozen base, a minute; make bench the figures; make bench-fleet HOSTS=10000  a fleet from recordings to page, WAYS=\"1 2 dask\""
	@echo "make new-rule ID=log-device-slow, make new-source NAME=block_scheduler  files to fill in, and the tests that wait for it"
	@echo "make zipapp   zaudit.pyz: one file that runs on any host with Python 3.11"
	@echo "make recorder zaudit-record.py: one file that records a host with Python 3.6 or later"
	@echo "make dist     wheel and sdist into dist/; make deb the Debian package into dist/; make site the documents into site/"
	@echo
	@echo "The lab (tests/lab/README.md): zaudit against real OpenZFS in virtual machines; LINE=2.3 for one OpenZFS line"
	@echo "make lab              build the guests (Debian, root)"
	@echo "make lab-test         run the scenarios; ONLY='name name' for some of them"
	@echo "make lab-verify       what zaudit verify says of pools whose truth is known"
	@echo "make lab-ansible      the collection for Ansible over ssh, against a guest (pip install ansible-core)"
	@echo "make lab-key-unit     keys that were loaded by hand, below a real systemd with zfs-mount-generator"
	@echo "make lab-service      the units of systemd and the script for ZED, below a real systemd beside a pool"
	@echo "make lab-diagnose     what zaudit diagnose says of loads whose cause is known"
	@echo "make lab-record       the same, and keep what came out right as fixtures/hosts/"
	@echo "make powercut         cut the power of guests that commit, count what is lost"
	@echo "make powercut-events  kill, reset, cut the power, take drives away: every event of the table"
	@echo "make powercut-report  what zaudit said of them, against what was lost"
	@echo "make points           every crash point of workloads in user space, on a line that make lab has built"
	@echo "make points-kernel    the same in the kernel of a guest, with more kinds of commits"
	@echo "make points-quick     one workload of it with its controls, in five minutes"
	@echo "make points-torn LINE=2.3  the table of torn pages"

demo: $(VENV)/run
	@if $(BIN)/zaudit check --timeout 5 --output /dev/null 2>/dev/null; [ $$? -ne 3 ]; then \
	  echo "zaudit check"; $(BIN)/zaudit check; \
	else \
	  echo "No pool is imported here. This is a recording of a virtual machine with real OpenZFS:"; \
	  echo "zaudit check --replay $(DEMO)"; echo; $(BIN)/zaudit check --replay $(DEMO); \
	fi; status=$$?; [ $$status -eq 0 ] || [ $$status -ge 10 ]

# each test that starts zaudit would otherwise compile all of it anew, where a shell asks for no bytecode
unexport PYTHONDONTWRITEBYTECODE

# side by side, a file of tests at a time: what one of them has worked out the others of its file need, too; those with the
# longest proofs first (tests/conftest.py)
# one worker more than there are processors: a quarter of the time of a test is waiting for what it started
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(VENV)/dev
	$(PYTEST)

fleet-test: $(VENV)/fleet
	$(PYTEST) tests/fleet tests/commands/test_fleet.py

documents: $(VENV)/dev
	$(BIN)/python -m tests.documents

quick: $(VENV)/dev
	$(PYTEST) --hypothesis-profile=brief -m "not slow and not lab"

chance: $(VENV)/dev
	$(PYTEST) --hypothesis-profile=chance -m hypothesis

coverage: $(VENV)/dev
	$(PYTEST) --cov

# outputs of other people's hosts, which are not part of the repository (tests/corpus)
corpus: $(VENV)/dev
	ZAUDIT_CORPUS=$(abspath $(CORPUS)) $(BIN)/python -m pytest tests/corpus

pythons:
	tests/pythons.sh

mutants: $(VENV)/dev
	$(BIN)/python -m tests.mutation $(foreach count,$(SAMPLE),--sample $(count)) $(foreach name,$(ONLY),--only $(name))

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

new-rule: $(VENV)/dev
	@$(BIN)/python -m tests.scaffold rule "$(ID)"

new-source: $(VENV)/dev
	@$(BIN)/python -m tests.scaffold source "$(NAME)"

fuzz: $(VENV)/dev
	@$(BIN)/pip install --quiet --disable-pip-version-check atheris >/dev/null 2>&1 || echo "atheris does not install here: the mutator alone"
	$(BIN)/python -u -m tests.fuzz --minutes $(or $(MINUTES),2) --seed $(or $(SEED),1)

prove-read-only: $(VENV)/dev
	$(BIN)/python -m tests.security.prove || [ $$? -eq 77 ]

# tables and modules, as they are where zaudit is installed: without them a checkout reads TOML and source at each start
compiled: $(VENV)/run
	$(BIN)/python -c 'from auditor import data; (data.HERE / data.COMPILED).write_text(data.compiled(installed=False))'
	@$(BIN)/python -m compileall -q auditor

bench: $(VENV)/dev compiled
	$(BIN)/python -m tests.bench

bench-short: $(VENV)/dev compiled
	$(BIN)/python -m tests.bench.short

bench-fleet: $(VENV)/dev
	$(BIN)/python -m tests.bench.fleet $(or $(HOSTS),10000) $(WAYS)

zipapp: $(VENV)/run
	$(PYTHON) tests/make_zipapp.py $(BIN)/python zaudit.pyz

recorder: $(VENV)/run
	$(BIN)/python -m tests.recorder.build zaudit-record.py

dist: $(VENV)/package
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/zaudit-*

deb:
	contrib/debian/build.sh dist

site: $(VENV)/package $(VENV)/dev
	contrib/site/build.sh $(BIN)/python site

# LINE and ONLY are empty or words: LINE=2.3, ONLY="healthy-raidz1 slog-striped"
LAB_ARGS = $(foreach line,$(LINE),--line $(line)) $(ONLY)

lab:
	tests/lab/build.sh $(LINE)

lab-test: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.run $(LAB_ARGS)

lab-record: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.run --record $(LAB_ARGS)

lab-verify: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.verify.run $(LAB_ARGS)

lab-ansible: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.ansible $(LAB_ARGS)

lab-service: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.service $(LAB_ARGS)

lab-key-unit: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.key_unit $(LAB_ARGS)

lab-diagnose: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.diagnose.run $(LAB_ARGS) $(ONLY)

powercut: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.power.cut $(LAB_ARGS)

powercut-events: $(VENV)/dev zipapp
	$(BIN)/python -u -m tests.lab.power.events $(LAB_ARGS)

powercut-report: $(VENV)/dev
	$(BIN)/python -m tests.lab.power.report $(LAB_ARGS)

points: $(VENV)/dev
	$(BIN)/python -u -m tests.lab.points.run --results tests/lab/points.json $(LAB_ARGS)

points-kernel: $(VENV)/dev
	$(BIN)/python -u -m tests.lab.points.kernel --results tests/lab/points.json $(LAB_ARGS)

points-quick: $(VENV)/dev
	$(BIN)/python -u -m tests.lab.points.run --quick $(LAB_ARGS) || [ $$? -eq 77 ]

points-torn: $(VENV)/dev
	$(BIN)/python -u -m tests.lab.points.torn $(LAB_ARGS)

clean:
	rm -rf $(VENV) build dist site *.egg-info zaudit-record.py zaudit.pyz zaudit.pyz.cdx.json SHA256SUMS .mypy_cache .ruff_cache .pytest_cache .hypothesis

# $(VENV)/run holds zaudit itself, $(VENV)/dev also what the tests need
$(VENV)/run: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "zaudit needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "python3-venv is missing: installing it on this machine (apt-get install python3-venv)" \
	  && apt-get update -qq && apt-get install -y -qq python3-venv; } \
	  || { echo "python3-venv is missing: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/dev: $(VENV)/run
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# what the fleet's tests need: as far as pip has it, as they are skipped without
$(VENV)/fleet: $(VENV)/dev
	@timeout 600 $(BIN)/pip install --quiet --disable-pip-version-check -e '.[fleet]' && touch $@ || echo "not all of it installs here: tests of the fleet are skipped"

$(VENV)/package: $(VENV)/run
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[package]'
	@touch $@
