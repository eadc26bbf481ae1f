"""Branches of a function that tells of every block of its code (``-fsanitize-coverage=trace-pc``), from its machine code.

The compiler calls a function in each block, and where that call returns to is a site. Between two sites the code has
conditional jumps, and which site follows another tells which way they went. A jump that may have gone either way between the
same two sites has no outcomes. The layout of a table is that of native/compiled/branches.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from perflaw.errors import TargetError
from perflaw.record.compiled.code import Code, code_of
from perflaw.record.compiled.dwarf import CompilationUnit, ranges_of, unit_ranges
from perflaw.record.compiled.elf import Elf, calls_hooks, libraries, open_elf

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE
    from iced_x86 import Instruction

TRACE: Final = "__sanitizer_cov_trace_pc"
"""What the compiler calls in every block."""
HOOK: Final = "perflaw_on_block"
"""The variable of perflaw/branches.h by which that function calls us."""
FLAGS: Final = "-O2 -g -fsanitize-coverage=trace-pc $(perflaw --cflags) -include perflaw/branches.h"
"""Of a build whose branches can be counted."""
HEAD: Final = np.dtype(
    [("magic", "<u8"), ("hook", "<u8"), ("ranges", "<u4"), ("sites", "<u4"), ("edges", "<u4"), ("outcomes", "<u4"),
     ("names", "<u4"), ("texts", "<u4")]
)  # fmt: skip
RANGE: Final = np.dtype([("first", "<u8"), ("end", "<u8")])
SITE: Final = np.dtype([("returns", "<u8"), ("first_edge", "<u4"), ("edges", "<u4")])
EDGE: Final = np.dtype([("to", "<u4"), ("first_outcome", "<u4"), ("outcomes", "<u4"), ("unused", "<u4")])
_MAGIC: Final = int.from_bytes(b"PRFBRCH1", "little")
_OUTSIDE: Final = 0
"""Number of the site that stands for what lies outside of the function."""
_MAX_WAYS: Final = 256
"""Ways from one site that are looked at; where there are more, none of its jumps has outcomes."""
_MAX_OUTCOMES: Final = 128
"""Names of outcomes of a function."""
_MAX_BLOCK: Final = 1 << 16
"""Bytes of code that are looked at for the end of a block."""
_MAX_CASES: Final = 1024
"""Entries of a table of jumps."""
_LONGEST: Final = 15
"""Bytes of the longest instruction."""

Outcome = tuple[int, int]
"""Address of a jump, and where it went."""


@dataclass(frozen=True, slots=True)
class _End:
    """How a stretch of code without sites ends."""

    site: int = 0
    """It calls the function of every block, which returns to here."""
    leaves: bool = False
    """It leaves the function."""
    jump: int = 0
    """Address of a jump that may go several ways."""
    targets: tuple[int, ...] = ()
    """These."""


class Unknown(Exception):
    """It is not known where a function's code goes."""


def require_branches(program: Path) -> None:
    """TargetError if neither a program nor a library of the person's that it is linked with tells of its branches."""
    what, remedy = f"{program}: --collect branches", f"make clean && make CFLAGS='{FLAGS}'"
    if calls_hooks(program):
        why = "branches are counted in programs whose calls are recorded by injected code: leave -finstrument-functions out"
        raise TargetError(what, why, remedy)
    for path in (program, *libraries(program)):
        with open_elf(path) as elf:
            if elf is not None and _address(elf, TRACE) and elf.dwarf() is not None:
                return
    why = "it was built without -fsanitize-coverage=trace-pc or without -g, so it does not tell which way it goes"
    raise TargetError(what, why, remedy)


def branch_table(module: Path, offset: int) -> bytes:
    """The table of the function that begins at an offset of a loaded file; empty if its branches are not known."""
    try:
        about = module.stat()
        return _table(module, offset, about.st_size, about.st_mtime_ns)
    except (
        Exception
    ):  # Unknown, and damaged debug information may raise anything, and costs the branches, not the recording
        return b""


@lru_cache(maxsize=4096)
def _table(module: Path, offset: int, size: int, time: int) -> bytes:
    with open_elf(module) as elf:
        dwarf = elf.dwarf() if elf else None
        if elf is None or dwarf is None:
            return b""
        trace, hook = _address(elf, TRACE), _address(elf, HOOK)
        at = offset + elf.base
        unit = next((unit for low, high, unit in unit_ranges(dwarf) if low <= at < high), None)
        if not trace or not hook or unit is None:
            return b""
        for entry in unit.unit.iter_DIEs():
            if (
                entry.tag == "DW_TAG_subprogram"
                and (ranges := ranges_of(dwarf, unit.unit, entry))
                and ranges[0][0] == at
            ):
                return _Function(elf, trace, ranges, _Lines(unit, entry)).table(hook)
    return b""


def _address(elf: Elf, name: str) -> int:
    """The address of a function or object that the file names; 0 if it does not."""
    return next((one.address for one in elf.symbols() if one.symbol == name), 0)


class _Lines:
    """The source lines of a unit's code."""

    def __init__(self, unit: CompilationUnit, function: DIE) -> None:
        self.unit, self.file = unit, unit.identity(function)[1]
        program = unit.dwarf.line_program_for_CU(unit.unit)
        states = [entry.state for entry in program.get_entries() if entry.state is not None] if program else []
        rows = {state.address: state for state in states}  # the last of several at one address has code
        self.addresses = np.array(sorted(rows), np.int64)
        self.rows = [rows[address] for address in self.addresses.tolist()]

    def label(self, address: int, with_column: bool = False) -> str:
        """``L12``; of another file than the function's, ``list.h.L12``; empty if the code is of no line."""
        at = int(np.searchsorted(self.addresses, address, "right")) - 1
        if at < 0 or self.rows[at].end_sequence or not self.rows[at].line:
            return ""
        row = self.rows[at]
        file = self.unit.file(row.file)
        place = f"L{row.line}" + f"_{row.column}" * with_column
        return place if file == self.file else f"{Path(file).name}.{place}"

    def label_before(self, address: int) -> str:
        """The label of an address, or of the next code before it that is of a line: compilers give some jumps none."""
        at = int(np.searchsorted(self.addresses, address, "right")) - 1
        while at > 0 and not self.rows[at].end_sequence and not self.rows[at].line:
            at -= 1
        return self.label(int(self.addresses[at])) if at >= 0 else ""


@dataclass(slots=True)
class _Function:
    """Finds the sites of a function and what lies between them."""

    elf: Elf
    trace: int
    ranges: Sequence[tuple[int, int]]
    lines: _Lines
    code: Code = field(init=False)
    bad: set[int] = field(default_factory=set)
    """Jumps of which it is not always known which way they went."""
    _ends: dict[int, _End] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.code = code_of(self.elf)

    # ---- the ways from site to site ----

    def ways(self) -> dict[int, dict[int, list[frozenset[Outcome]]]]:
        """Each site → sites that can follow it → the outcomes of each way to them. Site 0: outside."""
        start = self.ranges[0][0]
        found: dict[int, dict[int, list[frozenset[Outcome]]]] = {}
        left = [(_OUTSIDE, start)]
        while left:
            site, address = left.pop()
            if site not in found:
                found[site] = self._ways_from(address)
                left += [(following, following) for following in found[site] if following != _OUTSIDE]
        for ways in (ways for following in found.values() for ways in following.values()):
            self.bad |= {jump for way in ways[1:] for jump, _ in way ^ ways[0]}
        return found

    def _ways_from(self, start: int) -> dict[int, list[frozenset[Outcome]]]:
        found: dict[int, list[frozenset[Outcome]]] = {}
        seen: set[int] = set()
        left: list[tuple[int, tuple[Outcome, ...]]] = [(start, ())]
        number = 0
        while left:
            address, outcomes = left.pop()
            end = self._end(address)
            if end.site or end.leaves:
                found.setdefault(end.site or _OUTSIDE, []).append(frozenset(outcomes))
                number += 1
            for target in end.targets:
                is_again = any(jump == end.jump for jump, _ in outcomes)
                if is_again or number > _MAX_WAYS:  # a loop without a site, or too many ways
                    self.bad |= {end.jump, *(jump for jump, _ in outcomes)}
                    if target in seen:
                        continue
                    seen.add(target)
                left.append((target, (*outcomes, (end.jump, target))))
        return found

    def _end(self, address: int) -> _End:
        if address not in self._ends:
            self._ends[address] = self._find_end(address)
        return self._ends[address]

    def _find_end(self, address: int) -> _End:
        """Follow the code up to the next site or jump that may go several ways."""
        from iced_x86 import FlowControl

        seen: set[int] = set()
        while address not in seen and self._is_inside(address):
            seen.add(address)
            instruction = self._instruction(address)
            flow = instruction.flow_control
            target = instruction.near_branch_target if flow in (
                FlowControl.CALL, FlowControl.UNCONDITIONAL_BRANCH, FlowControl.CONDITIONAL_BRANCH
            ) else 0  # fmt: skip
            if flow == FlowControl.CALL and target == self.trace:
                return _End(site=instruction.next_ip)
            if flow == FlowControl.RETURN:
                return _End(leaves=True)
            if flow == FlowControl.UNCONDITIONAL_BRANCH:
                if not self._is_inside(target) or target == self.ranges[0][0]:
                    return _End(leaves=True)  # at the end, another function is called by a jump
                address = target
                continue
            if flow == FlowControl.CONDITIONAL_BRANCH:
                if not self._is_inside(target):
                    raise Unknown
                return _End(jump=instruction.ip, targets=(target, instruction.next_ip))
            if flow == FlowControl.INDIRECT_BRANCH:
                cases = tuple(self._cases())
                return _End(jump=instruction.ip, targets=cases) if cases else _End(leaves=True)
            if flow in (FlowControl.EXCEPTION, FlowControl.INTERRUPT) or instruction.is_invalid:
                return _End()
            address = instruction.next_ip
        return _End()

    def _is_inside(self, address: int) -> bool:
        return any(low <= address < high for low, high in self.ranges)

    def _instruction(self, address: int) -> Instruction:
        from iced_x86 import Decoder

        return Decoder(64, self.code.at(address, _LONGEST), ip=address).decode()

    def _cases(self) -> Iterator[int]:
        """Where the function's indirect jumps may go: what is in the tables that its code names."""
        targets: dict[int, None] = {}
        for low, high in self.ranges:
            address = low
            while address < high:
                instruction = self._instruction(address)
                address = instruction.next_ip if not instruction.is_invalid else address + 1
                named = instruction.ip_rel_memory_address if instruction.is_ip_rel_memory_operand else 0
                if not instruction.is_invalid:
                    targets |= dict.fromkeys(self._cases_at(named or instruction.memory_displacement))
        yield from targets

    def _cases_at(self, table: int) -> list[int]:
        """The entries of a table of jumps: offsets from itself, or addresses; empty if it is none."""
        data = self.elf.bytes_at(table, 8 * _MAX_CASES)
        if not data or self._is_inside(table):
            return []
        offsets = np.frombuffer(data[: len(data) // 4 * 4], np.int32).astype(np.int64) + table
        addresses = np.frombuffer(data[: len(data) // 8 * 8], np.int64)
        for entries in (offsets, addresses):
            inside = [self._is_inside(entry) for entry in entries.tolist()]
            count = inside.index(False) if False in inside else len(inside)
            if count > 1:
                return [int(entry) for entry in entries[:count]]
        return []

    # ---- the table ----

    def names(self, ways: dict[int, dict[int, list[frozenset[Outcome]]]]) -> dict[Outcome, str]:
        """The name of each outcome that is known; outcomes of one line that lead to one line have one name."""
        outcomes = {
            outcome for following in ways.values() for each in following.values() for way in each for outcome in way
        }
        by_jump: dict[int, list[int]] = {}
        for jump, target in sorted(outcomes):
            if jump not in self.bad:
                by_jump.setdefault(jump, []).append(target)
        names: dict[Outcome, str] = {}
        for jump, targets in by_jump.items():
            source = self.lines.label_before(jump)
            labels = [self._target_label(source, target) for target in targets]
            labels = [
                self.lines.label(self._block(target), with_column=True) or label if labels.count(label) > 1 else label
                for target, label in zip(targets, labels, strict=True)
            ]
            for to, label in zip(targets, labels, strict=True):
                if source and label and labels.count(label) == 1:
                    names[jump, to] = f"branch.{source}.to_{label}"
        kept = sorted(set(names.values()))[:_MAX_OUTCOMES]
        return {outcome: name for outcome, name in names.items() if name in kept}

    def _block(self, target: int) -> int:
        """An address in the block that a jump leads to: that of its call, which has the line that the block begins with."""
        return self._end(target).site - 1 if self._end(target).site else target

    def _target_label(self, source: str, target: int) -> str:
        """The line where the code goes on that a jump on line ``source`` leads to: another one, if it comes to another."""
        first = self.lines.label(self._block(target))
        if first not in ("", source):
            return first
        for address in self._straight(target):
            if (label := self.lines.label(address)) not in ("", source):
                return label
        return first or source

    def _straight(self, address: int) -> Iterator[int]:
        """The instructions from an address on, up to the next one that may go several ways or leaves."""
        from iced_x86 import FlowControl

        seen: set[int] = set()
        while address not in seen and self._is_inside(address):
            seen.add(address)
            yield address
            instruction = self._instruction(address)
            if instruction.flow_control == FlowControl.UNCONDITIONAL_BRANCH:
                address = instruction.near_branch_target
            elif instruction.flow_control in (FlowControl.NEXT, FlowControl.CALL, FlowControl.INDIRECT_CALL):
                address = instruction.next_ip
            else:
                return

    def table(self, hook: int) -> bytes:
        """The table that the program counts by."""
        ways = self.ways()
        names = self.names(ways)
        texts = sorted(set(names.values()))
        numbers = {name: number for number, name in enumerate(texts)}
        base = self.elf.base
        sites = [_OUTSIDE, *sorted(site for site in ways if site != _OUTSIDE)]
        place = {site: number for number, site in enumerate(sites)}
        site_rows: list[tuple[int, ...]] = []
        edge_rows: list[tuple[int, ...]] = []
        outcomes: list[int] = []
        for site in sites:
            following = ways[site]
            site_rows.append((site - base if site else 0, len(edge_rows), len(following)))
            for to, each in sorted(following.items()):
                known = sorted(numbers[names[outcome]] for outcome in each[0] if outcome in names)
                edge_rows.append((place[to], len(outcomes), len(known), 0))
                outcomes += known
        encoded = [f"{name}\0".encode() for name in texts]
        starts = np.cumsum([0, *map(len, encoded)])[:-1] if encoded else np.empty(0)
        text = b"".join(encoded) or b"\0"
        ranges = [(low - base, high - base) for low, high in self.ranges]
        counts = (len(ranges), len(site_rows), len(edge_rows), len(outcomes), len(texts), len(text))
        parts = [np.array([(_MAGIC, hook - base, *counts)], HEAD), np.array(ranges, RANGE), np.array(site_rows, SITE)]
        parts += [np.array(edge_rows, EDGE), np.array(outcomes, "<u4"), np.array(starts, "<u4")]
        return b"".join(part.tobytes() for part in parts) + text
