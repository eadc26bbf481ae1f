"""Tarballs of varied redundancy, the same on every call: files of Debian packages that are here, random bytes, repeats."""

import io
import random
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

ROOTS = {
    "text": ["/usr/share/perl", "/usr/share/perl5"],
    "source": ["/usr/include", sysconfig.get_path("stdlib")],
    "binary": ["/usr/bin", "/usr/lib/x86_64-linux-gnu"],
}
PACKED = {".gz", ".bz2", ".xz", ".zip", ".whl", ".pyc", ".zst"}
USUAL = {"text": 0.2, "source": 0.65, "binary": 0.05, "random": 0.05, "repeats": 0.05}
"""How much of each kind there is on average."""
SHAPE = 6.0
"""Of the gamma distribution of the shares: the greater, the more alike the tarballs."""
MOST = 1 << 14
"""Longer files are cut: else a few of them would make up a small tarball and not a large one."""


def sizes(count: int, least: int, most: int) -> list[int]:
    """So many sizes in equal ratios."""
    return [round(least * (most / least) ** (number / (count - 1))) for number in range(count)]


def make_tarballs(folder: Path, count: int, least: int, most: int) -> list[Path]:
    """``count`` tarballs of ``least`` to ``most`` bytes; every one has a share of its own of each kind of content."""
    pools = {kind: files(roots) for kind, roots in ROOTS.items()}
    made = []
    for number, size in enumerate(sizes(count, least, most)):
        chance = random.Random(number)
        path = folder / f"{number:02d}.tar"
        with tarfile.open(path, "w") as tar:
            _fill(tar, size, {kind: _contents(kind, pools.get(kind, []), chance) for kind in USUAL}, chance)
        made.append(path)
    return made


def files(roots: list[str]) -> list[Path]:
    """Files that are not packed, below these folders, in an order that leaves none beside its like."""
    found = (path for root in roots for path in Path(root).rglob("*") if path.suffix not in PACKED)
    listed = sorted(path for path in found if path.is_file() and not path.is_symlink() and path.stat().st_size > 512)
    random.Random(len(roots)).shuffle(listed)
    return listed


def _contents(kind: str, pool: list[Path], chance: random.Random) -> Iterator[bytes]:
    """Contents of files of that kind, without end."""
    place = chance.randrange(len(pool)) if pool else 0
    while True:
        if kind == "random":
            yield chance.randbytes(MOST)
        elif kind == "repeats":
            lines = (f"{chance.random():.6f} GET /page/{chance.randrange(40)}.html 200\n" for _ in range(MOST // 32))
            yield "".join(lines).encode()
        else:
            yield pool[place % len(pool)].read_bytes()
            place += 1


def _fill(tar: tarfile.TarFile, size: int, contents: dict[str, Iterator[bytes]], chance: random.Random) -> None:
    """Add members until the tarball is as large; shares of the kinds are drawn first."""
    shares = {kind: usual * chance.gammavariate(SHAPE, 1) for kind, usual in USUAL.items()}
    number, left = 0, size - 1024  # of zeros at its end
    while left > 512:
        (kind,) = chance.choices(list(shares), list(shares.values()))
        content = next(contents[kind])[: min(MOST, left - 512)]
        entry = tarfile.TarInfo(f"{kind}/{number:05d}")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
        left -= 512 + -(-len(content) // 512) * 512
        number += 1
