"""The patch of one function: a jump over its first instructions, and the same instructions for another place.

What is not certain to do the same elsewhere is refused with the reason. Decoding is iced-x86's, which tells where the operands
of an instruction stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iced_x86 import Instruction

JUMP: Final = 5
"""Bytes of a jump to anywhere within 2 GB."""
WINDOW: Final = 160
"""Bytes of a function that are decoded: short jumps from further on do not reach its first instructions."""
LOOP_WINDOW: Final = 400
"""Bytes that are decoded of a function that jumps back to its first instructions."""
_SHORT_REACH: Final = 130
"""Bytes behind a place from which no short jump reaches it."""
_MOST_RELOCATED: Final = 255
"""Bytes of relocated code: the program's table has one byte for their number."""
TOO_SHORT: Final = "shorter than a jump"
BRANCH_INTO: Final = "a jump into its first instructions"
LOOP: Final = "a loop back to its first instruction that cannot be moved"
CALL_EARLY: Final = "a call in its first bytes"
INDIRECT_CALL: Final = "an indirect call in its first bytes"
SPECIAL_JUMP: Final = "a loop or transaction instruction in its first bytes"
UNDECODABLE: Final = "data or an unknown instruction in its first bytes"
_RELATIVE_CALL, _RELATIVE_JUMP = 0xE8, 0xE9


class FixupKind(IntEnum):
    """How a number in relocated code is made of an address."""

    RELATIVE, LOW_HALF, HIGH_HALF = range(3)


@dataclass(frozen=True, slots=True)
class Fixup:
    """A number of four bytes that depends on where file and code are loaded."""

    target: int
    """Address in the file."""
    at: int
    """Its place in the relocated code."""
    kind: FixupKind
    """How it is made."""
    behind: int = 0
    """Bytes of its instruction behind it."""


@dataclass(frozen=True, slots=True)
class Patch:
    """How a function is patched."""

    address: int
    """Its address in the file."""
    original: bytes
    """Its bytes that the jump overwrites: whole instructions."""
    relocated: bytes
    """Code that does the same elsewhere and goes on behind them."""
    fixups: tuple[Fixup, ...]
    """Numbers of the relocated code to be filled in."""
    loop: int = 0
    """Bytes, from its address on, of the loop that jumps back to its first instructions, all of which is relocated; or 0."""


class Unpatchable(Exception):
    """A function cannot be patched; the argument is the reason."""


@dataclass(frozen=True, slots=True)
class Named:
    """A jump or call of 32 bits somewhere in the file that names an address in a function."""

    behind: int
    """Address behind it."""
    target: int
    """The address that it names."""
    is_own: bool
    """Whether it is a jump of the function itself, and no call."""


def patch_of(code: bytes, address: int, named: Sequence[Named] = ()) -> Patch:
    """The patch of the function whose code begins with these bytes.

    ``named``: what names addresses among these bytes. Unpatchable says why there is none.

    Where the function jumps back to its first instructions, all of that loop is relocated and stays in the relocated code: else
    each turn would pass the jump at the beginning, and be recorded as a call.
    """
    instructions = _decoded(code[:WINDOW], address)
    first = _first_behind(instructions, address, len(code[:WINDOW]))
    end = _end_of_loop(instructions, address, first)
    if end > first:
        instructions = _decoded(code[:LOOP_WINDOW], address)
        end = _end_of_loop(instructions, address, first)
    jumps = [(one.next_ip, one.near_branch_target) for one in instructions if _is_jump(one)]
    reason = LOOP if any(target == address for _, target in jumps) else BRANCH_INTO
    is_loop = any(address <= target < first for _, target in jumps)
    if end > first and instructions[-1].next_ip < address + min(len(code), end - address + _SHORT_REACH):
        raise Unpatchable(reason)  # what jumps into the loop is not known
    inside = {behind for behind, _ in jumps if behind <= end}
    for each in named:
        if each.behind not in inside and (address < each.target < end or (each.target == address and each.is_own)):
            raise Unpatchable(LOOP if each.target == address else BRANCH_INTO)
    relocation = _Relocation()
    for one in instructions:
        if one.ip < end:
            if end > first and _cannot_be_in_loop(one):
                raise Unpatchable(reason)
            relocation.add(code[one.ip - address : one.next_ip - address], one, one.next_ip - address)
    relocation.go_on(end)
    if not relocation.link(range(address, end)) or len(relocation.code) > _MOST_RELOCATED:
        raise Unpatchable(reason)
    loop = end - address if is_loop else 0
    return Patch(address, code[: first - address], bytes(relocation.code), tuple(relocation.fixups), loop)


def _decoded(code: bytes, address: int) -> list[Instruction]:
    """The instructions up to the first that is none."""
    from iced_x86 import Decoder

    return list(takewhile(lambda one: not one.is_invalid, Decoder(64, code, ip=address)))


def _first_behind(instructions: list[Instruction], address: int, length: int) -> int:
    """The address behind the instructions that a jump overwrites. Unpatchable if nothing says that they are the function's."""
    from iced_x86 import Mnemonic

    is_over = False
    for one in instructions:
        if is_over and one.mnemonic != Mnemonic.NOP:  # padding, as between a jump to a loop's test and the loop
            raise Unpatchable(TOO_SHORT)
        if one.next_ip >= address + JUMP:
            return one.next_ip
        is_over = is_over or _ends(one)
    decoded = sum(one.len for one in instructions)
    raise Unpatchable(TOO_SHORT if decoded == length else UNDECODABLE)


def _end_of_loop(instructions: list[Instruction], address: int, first: int) -> int:
    """The address behind all that jumps back to the first instructions, or to what lies between; ``first`` if nothing does."""
    jumps = [(one.next_ip, one.near_branch_target) for one in instructions if _is_jump(one)]
    end = first
    while (last := max((behind for behind, target in jumps if address <= target < end), default=end)) > end:
        end = last
    return end


def _is_special(instruction: Instruction) -> bool:
    return bool(instruction.is_loop or instruction.is_loopcc or instruction.is_jcx_short)


def _is_jump(instruction: Instruction) -> bool:
    return bool(instruction.is_jcc_short_or_near or instruction.is_jmp_short_or_near or _is_special(instruction))


def _ends(instruction: Instruction) -> bool:
    """Whether what stands behind it is not reached from it."""
    from iced_x86 import FlowControl

    return instruction.flow_control in (
        *(FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH),
        *(FlowControl.RETURN, FlowControl.EXCEPTION),
    )


def _cannot_be_in_loop(instruction: Instruction) -> bool:
    """Whether it may go on in the original loop: a call returns there, an indirect jump may lead there."""
    from iced_x86 import FlowControl

    flow = instruction.flow_control
    return _is_special(instruction) or flow not in (
        *(FlowControl.NEXT, FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH),
        *(FlowControl.RETURN, FlowControl.EXCEPTION),
    )


class _Relocation:
    """Relocated code in the making."""

    def __init__(self) -> None:
        self.code = bytearray()
        self.fixups: list[Fixup] = []
        self.ended = False
        """Whether nothing is reached behind the last instruction."""
        self._places: dict[int, int] = {}
        """Address of each instruction → its place in the relocated code."""
        self._jumps: list[tuple[int, int]] = []
        """Address that a jump leads to, and the place of the number that says so."""

    def add(self, original: bytes, instruction: Instruction, covered: int) -> None:
        """Add an instruction. ``covered``: bytes up to its end."""
        from iced_x86 import Decoder, FlowControl

        flow = instruction.flow_control
        self._places[instruction.ip] = len(self.code)
        if _is_special(instruction) or flow in (FlowControl.XBEGIN_XABORT_XEND, FlowControl.INTERRUPT):
            raise Unpatchable(SPECIAL_JUMP)
        if flow == FlowControl.INDIRECT_CALL:
            raise Unpatchable(INDIRECT_CALL)
        if flow == FlowControl.CALL:
            if original[0] != _RELATIVE_CALL or covered < JUMP:
                raise Unpatchable(CALL_EARLY)
            self._call(instruction.next_ip, instruction.near_branch_target)
        elif instruction.is_jmp_short_or_near:
            self._jump(bytes([_RELATIVE_JUMP]), instruction.near_branch_target)
        elif instruction.is_jcc_short_or_near:
            condition = original[-2] if instruction.is_jcc_short else original[-5]
            self._jump(bytes([0x0F, 0x80 | condition & 0x0F]), instruction.near_branch_target)
        else:
            if instruction.is_ip_rel_memory_operand:
                decoder = Decoder(64, original, ip=instruction.ip)
                at = decoder.get_constant_offsets(decoder.decode()).displacement_offset
                behind = len(original) - at - 4
                target = instruction.ip_rel_memory_address
                self.fixups.append(Fixup(target, len(self.code) + at, FixupKind.RELATIVE, behind))
            self.code += original
        self.ended = flow == FlowControl.CALL or _ends(instruction)

    def go_on(self, address: int) -> None:
        """End the code with a jump to where the original goes on, if it does."""
        if not self.ended:
            self._jump(bytes([_RELATIVE_JUMP]), address)

    def link(self, moved: range) -> bool:
        """Have jumps to relocated instructions lead to them where they are now. False if one leads into an instruction."""
        for target, at in self._jumps:
            if target not in moved:
                self.fixups.append(Fixup(target, at, FixupKind.RELATIVE))
            elif target in self._places:
                self.code[at : at + 4] = (self._places[target] - at - 4).to_bytes(4, "little", signed=True)
            else:
                return False
        return True

    def _jump(self, opcode: bytes, target: int) -> None:
        self.code += opcode
        self._jumps.append((target, len(self.code)))
        self.code += bytes(4)

    def _call(self, returns: int, target: int) -> None:
        """Push the return address that the original has, so that unwinding finds its frame, and jump."""
        self.code += b"\x68"  # push of an immediate
        self.fixups.append(Fixup(returns, len(self.code), FixupKind.LOW_HALF))
        self.code += bytes(4) + b"\xc7\x44\x24\x04"  # mov of an immediate to 4(%rsp)
        self.fixups.append(Fixup(returns, len(self.code), FixupKind.HIGH_HALF))
        self.code += bytes(4)
        self.code += bytes([_RELATIVE_JUMP])
        self.fixups.append(Fixup(target, len(self.code), FixupKind.RELATIVE))  # also to itself, by its own beginning
        self.code += bytes(4)
