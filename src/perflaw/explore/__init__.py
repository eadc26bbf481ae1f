"""Studies of configurations: knobs in, trials run, a law out (SPEX, §3)."""
