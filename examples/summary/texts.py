"""Cuts texts of several sizes out of real English prose that every Python carries: its own language reference."""

import sys
from pathlib import Path
from pydoc_data.topics import topics


def main(folder: str, *kilobytes: str) -> None:
    prose = "\n\n".join(topics[name] for name in sorted(topics))
    for size in kilobytes:
        Path(folder, f"text-{size}k.txt").write_text(prose[: int(size) * 1000], encoding="utf-8")


main(*sys.argv[1:])
