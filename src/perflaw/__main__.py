"""``python -m perflaw``."""

from perflaw.cli.main import main

main()
