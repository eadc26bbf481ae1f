# The tasks. `make` alone runs every check.
.PHONY: test demo bench environment format clean

test:            ## lint, types and all tests on every Python found
	@sh scripts/test.sh

demo: environment ## record a real program on real text, print its laws, write the page
	@sh examples/summary/demo.sh

environment:     ## perflaw in .venv, for use and for the demo
	@sh scripts/environment.sh .venv 3.11 demo

bench: environment ## accuracy, calibration and cost, as ratios
	@.venv/bin/python benchmarks/learner.py
	@.venv/bin/python benchmarks/recorder.py

format:          ## rewrite the sources in the house's format
	@.venv-3.11/bin/ruff check --fix --quiet . && .venv-3.11/bin/ruff format --quiet .

clean:           ## forget environments and demo output
	rm -rf .venv .venv-3.* demo-out
