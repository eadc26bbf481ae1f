"""The collector as a process of its own: ``python -m perflaw.record.probes.process DESCRIPTOR FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from perflaw.record.probes.collector import MOST
from perflaw.record.probes.service import Service
from perflaw.wire.channel import over


def main(arguments: list[str]) -> None:
    """Serve the recorder at a descriptor. Further arguments: records a ring and turn, and seconds between turns."""
    descriptor, folder, *bounds = arguments
    most, pause_s = (int(bounds[0]), float(bounds[1])) if bounds else (MOST, 0.0)
    number = int(descriptor)
    # The recorder may be stopped for a while (Ctrl-Z); records that rings lose in that time are counted.
    channel = over(number, number, "recorder", frame_s=86_400.0)
    Service(channel, lambda: [Path(folder)], most=most, pause_s=pause_s).run()


if __name__ == "__main__":
    main(sys.argv[1:])
