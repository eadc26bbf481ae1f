"""The patch of one function: a jump over its first instructions, and the same instructions for another place.

What is not certain to do the same elsewhere is refused with the reason. Decoding is iced-x86's, which tells where the operands
of an instruction stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iced_x86 import Decoder, Instruction

JUMP: Final = 5
"""Bytes of a jump to anywhere within 2 GB."""
WINDOW: Final = 160
"""Bytes of a function that are decoded: short jumps from further on do not reach its first instructions."""
TOO_SHORT: Final = "shorter than a jump"
BRANCH_INTO: Final = "a jump into its first instructions"
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


class Unpatchable(Exception):
    """A function cannot be patched; the argument is the reason."""


def patch_of(code: bytes, address: int, targets: Sequence[int] = ()) -> Patch:
    """The patch of the function whose code begins with these bytes.

    ``targets``: addresses that code elsewhere may jump to, or where another function begins. Unpatchable says why there is
    none.
    """
    from iced_x86 import Decoder, Mnemonic

    decoder = Decoder(64, code[:WINDOW], ip=address)
    relocation = _Relocation()
    own_targets = set(targets)
    covered = 0
    for instruction in decoder:
        if instruction.is_invalid:
            if covered < JUMP:
                raise Unpatchable(UNDECODABLE)
            break
        if instruction.is_jcc_short_or_near or instruction.is_jmp_short_or_near or _is_special(instruction):
            own_targets.add(instruction.near_branch_target)
        if covered < JUMP:
            first = instruction.ip - address
            covered += instruction.len
            if not relocation.ended:
                relocation.add(code[first : first + instruction.len], instruction, decoder, covered)
            elif instruction.mnemonic != Mnemonic.NOP:  # padding, as between a jump to a loop's test and the loop
                raise Unpatchable(TOO_SHORT)
    if covered < JUMP:
        raise Unpatchable(TOO_SHORT)
    if any(address < target < address + covered for target in own_targets):
        raise Unpatchable(BRANCH_INTO)
    relocation.go_on(address + covered)
    return Patch(address, code[:covered], bytes(relocation.code), tuple(relocation.fixups))


def _is_special(instruction: Instruction) -> bool:
    return bool(instruction.is_loop or instruction.is_loopcc or instruction.is_jcx_short)


class _Relocation:
    """Relocated code in the making."""

    def __init__(self) -> None:
        self.code = bytearray()
        self.fixups: list[Fixup] = []
        self.ended = False
        """Whether nothing is reached behind the last instruction."""

    def add(self, original: bytes, instruction: Instruction, decoder: Decoder, covered: int) -> None:
        """Add an instruction. ``covered``: bytes up to its end."""
        from iced_x86 import FlowControl

        flow = instruction.flow_control
        if _is_special(instruction) or flow in (FlowControl.XBEGIN_XABORT_XEND, FlowControl.INTERRUPT):
            raise Unpatchable(SPECIAL_JUMP)
        if flow == FlowControl.INDIRECT_CALL:
            raise Unpatchable(INDIRECT_CALL)
        if flow == FlowControl.CALL:
            if original[0] != _RELATIVE_CALL or covered < JUMP:
                raise Unpatchable(CALL_EARLY)
            self._call(instruction.next_ip, instruction.near_branch_target)
        elif instruction.is_jmp_short_or_near:
            self._branch(bytes([_RELATIVE_JUMP]), instruction.near_branch_target)
        elif instruction.is_jcc_short_or_near:
            condition = original[-2] if instruction.is_jcc_short else original[-5]
            self._branch(bytes([0x0F, 0x80 | condition & 0x0F]), instruction.near_branch_target)
        else:
            if instruction.is_ip_rel_memory_operand:
                at = decoder.get_constant_offsets(instruction).displacement_offset
                behind = len(original) - at - 4
                target = instruction.ip_rel_memory_address
                self.fixups.append(Fixup(target, len(self.code) + at, FixupKind.RELATIVE, behind))
            self.code += original
        self.ended = flow in (
            *(FlowControl.CALL, FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH),
            *(FlowControl.RETURN, FlowControl.EXCEPTION),
        )

    def go_on(self, address: int) -> None:
        """End the code with a jump to where the original goes on, if it does."""
        if not self.ended:
            self._branch(bytes([_RELATIVE_JUMP]), address)

    def _branch(self, opcode: bytes, target: int) -> None:
        self.code += opcode
        self.fixups.append(Fixup(target, len(self.code), FixupKind.RELATIVE))
        self.code += bytes(4)

    def _call(self, returns: int, target: int) -> None:
        """Push the return address that the original has, so that unwinding finds its frame, and jump."""
        self.code += b"\x68"  # push of an immediate
        self.fixups.append(Fixup(returns, len(self.code), FixupKind.LOW_HALF))
        self.code += bytes(4) + b"\xc7\x44\x24\x04"  # mov of an immediate to 4(%rsp)
        self.fixups.append(Fixup(returns, len(self.code), FixupKind.HIGH_HALF))
        self.code += bytes(4)
        self._branch(bytes([_RELATIVE_JUMP]), target)
