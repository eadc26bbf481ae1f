"""Source packages of Debian, fetched by apt into a folder of their own: nothing of the machine's own lists is touched."""

import subprocess
import sys
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SOURCES = """Types: deb-src
URIs: http://deb.debian.org/debian
Suites: {suite}
Components: main
Signed-By: {keyring}
"""


def fetch(package: str, folder: Path) -> Path:
    """The unpacked source of a package of this Debian, below ``folder``; apt checks its signature."""
    apt = _apt(folder)
    where = folder / package
    where.mkdir(parents=True)
    print(f"fetching the source of {package}", file=sys.stderr)
    _run([*apt, "--download-only", "source", package], where)
    _run(["dpkg-source", "--no-check", "-x", next(where.glob("*.dsc")).name, "source"], where)
    return where / "source"


def _apt(folder: Path) -> list[str]:
    """An apt-get with lists and cache below ``folder``, which knows this Debian's sources and nothing else."""
    parts, lists, cache = (
        folder / "apt/parts",
        folder / "apt/state/lists/partial",
        folder / "apt/cache/archives/partial",
    )
    known = parts.exists()
    for each in (parts, lists, cache):
        each.mkdir(parents=True, exist_ok=True)
    (parts / "source.sources").write_text(SOURCES.format(suite=_suite(), keyring=KEYRING))
    options = {
        "Dir::State": folder / "apt/state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": folder / "apt/cache",
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": parts,
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    if not known:
        _run([*apt, "update"], folder)
    return apt


def _suite() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    return next(line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_CODENAME="))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr or done.stdout}")
