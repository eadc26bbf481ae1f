"""Where a variable lies at an address of the code: DWARF's location expressions and location lists (versions 4 and 5).

What depends on values that the code has overwritten by then, or on more than registers and pointers, has no location.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from elftools.dwarf.callframe import FDE
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarf_expr import DWARFExprOp, DWARFExprParser
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.structs import DWARFStructs

_LOST_IN_HOOK: Final = (0, 4, 5, 10, 11)
"""DWARF's numbers of the registers that a call of the entry hook changes: rax, rsi, rdi, r10, r11."""
_STACK_POINTER: Final = 7
"""DWARF's number of rsp."""
MODULE: Final = -1
"""Base of addresses that are given from where the file is loaded, instead of a register."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address: the content of a register plus an offset; for each further offset, the pointer found there plus that."""

    base: int
    """DWARF's number of a register, or ``MODULE``."""
    offsets: tuple[int, ...] = (0,)
    """At least one."""

    def plus(self, offset: int) -> Address:
        """The address so many bytes on."""
        return replace(self, offsets=(*self.offsets[:-1], self.offsets[-1] + offset))

    @property
    def pointee(self) -> Address:
        """The address that stands at this address."""
        return replace(self, offsets=(*self.offsets, 0))


@dataclass(frozen=True, slots=True)
class InRegister:
    """The value is in a register."""

    register: int
    """DWARF's number."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """The value is at an address."""

    address: Address
    """Its first byte."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The value is an address itself."""

    address: Address
    """That address."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The value is in several places."""

    parts: tuple[tuple[int, InRegister | InMemory], ...]
    """(bytes, location) of each part, in order."""


Location = InRegister | InMemory | Computed | Pieces


class Unlocated(Exception):
    """The value is nowhere, or nowhere that is understood."""


class Frames:
    """The canonical frame address at any address of a file's code, from its call frame information."""

    def __init__(self, dwarf: DWARFInfo) -> None:
        self.dwarf = dwarf

    @cached_property
    def _entries(self) -> list[tuple[int, FDE]]:
        """(start, entry) in order."""
        from elftools.dwarf.callframe import FDE

        dwarf = self.dwarf
        entries = dwarf.EH_CFI_entries() if dwarf.has_EH_CFI() else dwarf.CFI_entries() if dwarf.has_CFI() else []
        found = [(int(entry["initial_location"]), entry) for entry in entries if isinstance(entry, FDE)]
        return sorted(found, key=lambda row: row[0])

    def frame_address(self, pc: int) -> Address:
        """The canonical frame address where ``pc`` is executed; Unlocated if that is not known."""
        at = bisect_right(self._entries, pc, key=lambda row: row[0]) - 1
        if at < 0 or pc >= self._entries[at][0] + self._entries[at][1]["address_range"]:
            raise Unlocated
        rows = [row for row in self._entries[at][1].get_decoded().table if row["pc"] <= pc]
        rule = rows[-1]["cfa"] if rows else None
        if rule is None or rule.reg is None:
            raise Unlocated
        return Address(rule.reg, (rule.offset,))


@lru_cache(maxsize=4)
def _parser(structs: DWARFStructs) -> DWARFExprParser:
    """The parser of a unit's expressions, which takes a millisecond to make."""
    from elftools.dwarf.dwarf_expr import DWARFExprParser

    return DWARFExprParser(structs)


def _register_of(place: Location) -> int | None:
    """DWARF's number of the register that a location needs; None for several."""
    match place:
        case InRegister(register):
            return register
        case InMemory(address) | Computed(address):
            return address.base
    return None


@dataclass(frozen=True, slots=True)
class Locator:
    """Locations at one address of one function's code."""

    unit: CompileUnit
    """The compilation unit of the function."""
    function: DIE
    """The subprogram, which names the base of its frame."""
    frames: Frames
    """The frames of its file."""
    pc: int
    """The address."""
    base: int
    """Address in the file that corresponds to the start of the loaded image."""
    at_entry: bool = False
    """Whether it is the function's first instruction, instead of a call of the entry hook."""

    def location(self, variable: DIE) -> Location:
        """Where a variable lies; Unlocated if that is not known, or it is constant or was optimised away."""
        attribute = variable.attributes.get("DW_AT_location")
        if attribute is None:
            raise Unlocated
        place = self.evaluated(variable)
        if attribute.form == "DW_FORM_exprloc" and self.at_entry and not isinstance(place, InMemory):
            raise Unlocated  # where it is in the end, which may not be where it comes
        if attribute.form == "DW_FORM_exprloc" and self.stores_late and isinstance(place, InMemory):
            self._require_caller_stored(place.address)
        if not self.at_entry and _register_of(place) in _LOST_IN_HOOK:
            raise Unlocated
        if self.at_entry and self._is_clang and isinstance(place, InMemory) and place.address.base == _STACK_POINTER:
            raise Unlocated  # where it is once the frame is made
        return place

    def evaluated(self, variable: DIE) -> Location:
        """What the expression for a variable says, whether it holds already at the function's beginning or not."""
        if "DW_AT_location" not in variable.attributes:
            raise Unlocated
        return self._evaluate(self.expression(variable, "DW_AT_location"))

    @property
    def _is_clang(self) -> bool:
        producer = self.unit.get_top_DIE().attributes.get("DW_AT_producer")
        return producer is not None and b"clang" in producer.value

    @property
    def stores_late(self) -> bool:
        """Whether arguments in the function's frame are stored there later: clang stores them behind the hook's call."""
        return self.at_entry or self._is_clang

    def _require_caller_stored(self, address: Address) -> None:
        """Unlocated if the address is in the function's own frame; what lies above was stored by its caller."""
        if address.base == MODULE:
            return
        frame = self.frames.frame_address(self.pc)
        if frame.base != address.base or address.offsets[0] < frame.offsets[0]:
            raise Unlocated

    def expression(self, entry: DIE, name: str) -> Sequence[int]:
        """The expression of an attribute at the address; Unlocated if there is none."""
        from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationExpr, LocationParser

        dwarf, version = self.unit.dwarfinfo, self.unit["version"]
        attribute = entry.attributes[name]
        if not LocationParser.attribute_has_location(attribute, version):
            raise Unlocated
        found = LocationParser(dwarf.location_lists()).parse_from_attribute(attribute, version, entry)
        if isinstance(found, LocationExpr):
            return found.loc_expr
        top = self.unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        start = top.value if top else 0
        default: Sequence[int] | None = None
        for row in found:
            if isinstance(row, BaseAddressEntry):
                start = row.base_address
            elif isinstance(row, LocationEntry):
                shift = 0 if row.is_absolute else start
                if row.begin_offset == row.end_offset == -1:
                    default = row.loc_expr
                elif row.begin_offset + shift <= self.pc < row.end_offset + shift:
                    return row.loc_expr
        if default is None:
            raise Unlocated
        return default

    def _evaluate(self, expression: Sequence[int]) -> Location:
        operations = _parser(self.unit.structs).parse_expr(expression)
        if any(operation.op_name == "DW_OP_piece" for operation in operations):
            return self._pieces(operations)
        return self._single(operations)

    def _pieces(self, operations: list[DWARFExprOp]) -> Pieces:
        parts: list[tuple[int, InRegister | InMemory]] = []
        begin = 0
        for at, operation in enumerate(operations):
            if operation.op_name == "DW_OP_piece":
                part = self._single(operations[begin:at])
                if not isinstance(part, InRegister | InMemory):
                    raise Unlocated
                parts.append((operation.args[0], part))
                begin = at + 1
        return Pieces(tuple(parts))

    def _single(self, operations: list[DWARFExprOp]) -> Location:
        """Run an expression on a stack of addresses and constants."""
        stack: list[Address | int] = []
        is_value = False
        for operation in operations:
            name, arguments = operation.op_name, operation.args
            if is_value:
                raise Unlocated
            if name.startswith("DW_OP_reg") and name != "DW_OP_regval_type":
                if len(operations) > 1:
                    raise Unlocated
                return InRegister(arguments[0] if name == "DW_OP_regx" else int(name.removeprefix("DW_OP_reg")))
            if name == "DW_OP_bregx":
                stack.append(Address(arguments[0], (arguments[1],)))
            elif name.startswith("DW_OP_breg"):
                stack.append(Address(int(name.removeprefix("DW_OP_breg")), (arguments[0],)))
            elif name == "DW_OP_fbreg":
                stack.append(self._frame_base().plus(arguments[0]))
            elif name == "DW_OP_call_frame_cfa":
                stack.append(self.frames.frame_address(self.pc))
            elif name == "DW_OP_addr":
                stack.append(Address(MODULE, (arguments[0] - self.base,)))
            elif name == "DW_OP_addrx":
                stack.append(Address(MODULE, (self.unit.dwarfinfo.get_addr(self.unit, arguments[0]) - self.base,)))
            elif name.startswith("DW_OP_lit"):
                stack.append(int(name.removeprefix("DW_OP_lit")))
            elif name.startswith("DW_OP_const") and name[len("DW_OP_const") :] in (
                *("1u", "1s", "2u", "2s", "4u", "4s", "8u", "8s", "u", "s"),
            ):
                stack.append(arguments[0])
            elif name in ("DW_OP_plus_uconst", "DW_OP_plus", "DW_OP_minus"):
                offset = arguments[0] if name == "DW_OP_plus_uconst" else stack.pop()
                if not stack or not isinstance(offset, int):
                    raise Unlocated
                address, sign = stack.pop(), -1 if name == "DW_OP_minus" else 1
                stack.append(address + sign * offset if isinstance(address, int) else address.plus(sign * offset))
            elif name == "DW_OP_deref" and stack and isinstance(stack[-1], Address):
                stack.append(stack.pop().pointee)  # type: ignore[union-attr]  # it is an Address, see above
            elif name == "DW_OP_stack_value":
                is_value = True
            elif name != "DW_OP_nop":
                raise Unlocated
        if len(stack) != 1 or not isinstance(stack[0], Address):
            raise Unlocated
        return Computed(stack[0]) if is_value else InMemory(stack[0])

    def _frame_base(self) -> Address:
        if "DW_AT_frame_base" not in self.function.attributes:
            raise Unlocated
        place = self._evaluate(self.expression(self.function, "DW_AT_frame_base"))
        if isinstance(place, InRegister) and not self.at_entry:  # it is the base once the frame is made
            return Address(place.register)
        if isinstance(place, InMemory):
            return place.address
        raise Unlocated
