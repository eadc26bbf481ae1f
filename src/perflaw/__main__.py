"""``python -m perflaw``, and where the command ``perflaw`` begins."""

import sys


def start() -> None:
    """Run the command line. Who interrupts it while it is still loading gets no traceback either, but the exit status."""
    try:
        from perflaw.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    start()
