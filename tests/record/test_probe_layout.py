"""The area's layout is said three times, by C, by NumPy and by the Python probes, and is one."""

from perflaw.probes import area as python
from perflaw.probes import writer
from perflaw.record.probes import layout
from tests.record.probe_programs import built, run

KINDS = {"head": layout.HEAD, "entry": layout.ENTRY, "ring": layout.RING, "record": layout.RECORD}


def test_c_and_numpy_agree():
    _, said = run(built("layout.c"), folder=None)
    found = {}
    for line in said.splitlines():
        kind, part, offset, size = line.split()
        found[kind, part] = (int(offset), int(size))
    for kind, dtype in KINDS.items():
        assert found.pop(("size", kind))[0] == dtype.itemsize
        for name in dtype.names:
            field, offset = dtype.fields[name]
            if (kind, name) in found:
                assert found.pop((kind, name)) == (offset, field.itemsize), (kind, name)
            else:  # C has these in one word, which it reads at once
                assert name in ("enabled", "registered", "type", "conflict", "subsample"), (kind, name)
    assert not found, "NumPy does not know these"


def test_numpy_and_the_python_probes_agree():
    entry = {
        name: layout.ENTRY.fields[name.lower()][1]
        for name in ["REGISTERED", "TYPE", "CONFLICT", "SUBSAMPLE", "NAME", "UNIT"]
    }
    entry |= {name: layout.ENTRY.fields[name.lower()][1] for name in ("FIELDS", "EVERY", "REFUSED")}
    head = {
        name: layout.HEAD.fields[name.lower()][1]
        for name in ["LOST_NO_RING", "CONFLICTS", "ENABLE_ALL", "USED", "REFUSAL"]
    }
    ring = {name: layout.RING.fields[name.lower()][1] for name in ("STATE", "THREAD", "LOST_NESTED", "HEAD")}
    for name, offset in {**entry, **head, **ring}.items():
        assert getattr(python, name) == offset, name
    for name in ("MAGIC", "VERSION", "PROBES", "HEAD_BYTES", "ENTRY_BYTES", "RING_HEAD_BYTES", "RECORD_BYTES", "RINGS"):
        assert getattr(python, name) == getattr(layout, name)
    for name in ("NANOSECONDS", "IN_USE", "ENDED"):
        assert getattr(python, name) == getattr(layout, name)
    assert python.RECORDS == layout.RING_RECORDS
    assert all(getattr(writer, name) == number for number, name in layout.TYPES.items())
