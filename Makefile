# The tasks. `make` alone runs every check.
.PHONY: test test-all demo example bench soak environment wheels format clean

test:            ## lint, types, the tests on Python 3.11, and on other Pythons found those that depend on the interpreter
	@sh scripts/test.sh

test-all:        ## lint, types and all tests, slow ones too, on every Python found
	@sh scripts/test.sh --all

demo: environment ## record a real program on real text, print its laws, write the page
	@sh examples/summary/demo.sh

STUDY ?= sqlite
example: environment ## explore a ready-made study of examples/: make example STUDY=redis
	@sh scripts/servers.sh
	@cd examples/$(STUDY) && PATH="$(CURDIR)/.venv/bin:$$PATH" perflaw explore $(STUDY).yaml

environment:     ## perflaw in .venv, for use and for the demo
	@sh scripts/environment.sh .venv 3.11 demo

bench: environment ## accuracy, calibration and cost, as ratios; status 1 where a bar is missed
	@sh scripts/bench.sh learner learner_several unit_growth zoo programs_ahead annotation_speed start_up trend_scale scales overhead recorded_run own_costs lines framework memory kills corruption neighbour variance_speed variance_planted partition grouping paths_shape paths_cost hooks probes unit_costs php regressions our_laws trust installed_size

soak: environment ## long ones: test suites of real packages under the recorder, minutes of churn, servers of others, an hour of a fleet
	@sh scripts/servers.sh
	@sh scripts/bench.sh packages churn faults conditions counts_ahead attach attach_compiled attach_programs nulls mine_web mine_live mine_prometheus mine_order progress mine_servers mine_soak fleet fleet_kills mine_sqlite mine_redis lua explore_examples explore_policies explore_grids explore_shapes explore_stopping explore_kills explore_sqlite explore_servers

wheels:          ## what is published, in dist/: the sources, and a wheel for CPython 3.11 to 3.13
	@sh scripts/wheels.sh

format:          ## rewrite the sources in the house's format
	@.venv-3.11/bin/ruff check --fix --quiet . && .venv-3.11/bin/ruff format --quiet .

clean:           ## forget environments and demo output
	rm -rf .venv .venv-3.* demo-out
