"""Arguments of functions without debug information, by the registers that their first instructions read (x86-64).

A register in which an argument would come is one if an instruction reads it before any writes it. Whether it is a number or
an address is told by what is done with it: what serves as the base of a memory operand is an address. A number of 64 bits
that nothing decides about may still be one, or one of 32 bits that was copied with the whole register, so the program tells
only its small values (``Kind.SMALL``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from perflaw.record.compiled.features.programs import FeatureSource, Kind, register_spot

if TYPE_CHECKING:
    from iced_x86 import Instruction, InstructionInfoFactory

WINDOW: Final = 160
"""Bytes of a function that are looked at."""
MOST_SMALL: Final = 1 << 31
"""Numbers from here on are addresses, or such of 32 bits with something else in the upper half of the register."""
_MOST_INSTRUCTIONS: Final = 600
"""Of a function that are looked at."""
_KINDS: Final = {1: Kind.UNSIGNED, 2: Kind.UNSIGNED, 4: Kind.SIGNED, 8: Kind.SMALL}
"""Bytes that are read of a register → how the number is made of them."""


def argument_features(code: bytes, address: int, lowest: int = MOST_SMALL) -> tuple[FeatureSource, ...]:
    """Features ``arg1``, ``arg2`` … of the function whose first bytes are given, by the order of the registers.

    ``lowest``: numbers from this one on may be addresses. Code is followed where no jump is taken. So an argument that only
    other ways read is none, and its number stays free.

    >>> argument_features(bytes.fromhex("488b07 01f0 c3"), 0)[0].name  # mov rax, [rdi]; add eax, esi; ret
    'arg2'
    """
    from iced_x86 import Decoder, FlowControl, Register

    arguments: dict[int, _Argument] = {
        register: _Argument(number, dwarf)
        for number, (register, dwarf) in enumerate(
            zip(
                (Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9),
                (5, 4, 1, 2, 8, 9),
                strict=True,
            ),
            1,
        )
    }
    holders: dict[int, _Argument] = dict(arguments)  # register → the argument whose value it holds
    for instruction in Decoder(64, code, ip=address):
        flow = instruction.flow_control
        if instruction.is_invalid or flow in (
            FlowControl.RETURN,
            FlowControl.UNCONDITIONAL_BRANCH,
            FlowControl.INDIRECT_BRANCH,
        ):
            break
        _step(instruction, holders)
        if flow in (
            FlowControl.CALL,
            FlowControl.INDIRECT_CALL,
        ):  # it may change all registers but those it has to keep
            for register in (*arguments, Register.RAX, Register.R10, Register.R11):
                holders.pop(register, None)
        if not holders:
            break
    numbers = [one for one in arguments.values() if one.size and not one.is_address]
    return tuple(
        FeatureSource(
            f"arg{one.number}", _KINDS[one.size], register_spot(one.dwarf), one.size, constant=min(lowest, MOST_SMALL)
        )
        for one in numbers
    )


def registers_read(code: bytes, address: int, wanted: frozenset[int]) -> frozenset[int]:
    """Those of the registers, by DWARF's numbers, that a function reads on any way before it writes them.

    ``code`` is all of the function's. Of a function with very many instructions only the first ones are looked at.
    """
    from iced_x86 import Decoder, FlowControl, OpAccess, Register, RegisterExt

    general = (Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9)
    numbers: dict[int, int] = dict(zip(general, (5, 4, 1, 2, 8, 9), strict=True))
    numbers |= {Register.ZMM0 + at: 17 + at for at in range(8)}
    unread = {register for register, number in numbers.items() if number in wanted}
    every, left, known = frozenset(unread), [(address, frozenset(unread))], dict[int, frozenset[int]]()
    decoder = Decoder(64, code, ip=address)
    for _ in range(_MOST_INSTRUCTIONS):
        if not left or not unread:
            break
        at, whole = left.pop()
        whole = (whole | known.get(at, frozenset())) & unread
        if not address <= at < address + len(code) or (at in known and whole <= known[at]) or not whole:
            continue
        known[at] = whole
        decoder.position, decoder.ip = at - address, at
        instruction = decoder.decode()
        written = set()
        for used in _factory().info(instruction).used_registers():
            register = RegisterExt.full_register(used.register)
            if used.access in (OpAccess.WRITE, OpAccess.COND_WRITE):
                written.add(register)
            elif used.access != OpAccess.NONE and register in whole:
                unread.discard(register)
        flow, whole = instruction.flow_control, frozenset(whole - written)
        if flow in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
            continue  # behind it they are not the arguments any more
        if flow in (FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH):
            left.append((instruction.near_branch_target, whole))
            if not address <= instruction.near_branch_target < address + len(code):
                unread -= whole  # the function that it ends with may read them
        if flow in (FlowControl.NEXT, FlowControl.CONDITIONAL_BRANCH):
            left.append((instruction.next_ip, whole))
        elif flow == FlowControl.INDIRECT_BRANCH:
            unread -= whole
    return frozenset(numbers[register] for register in every - unread)


@cache
def _factory() -> InstructionInfoFactory:
    from iced_x86 import InstructionInfoFactory

    return InstructionInfoFactory()


@dataclass(slots=True)
class _Argument:
    """A register in which an argument may come."""

    number: int
    """Its place among these registers, from 1 on."""
    dwarf: int
    """Its number in DWARF."""
    size: int = field(default=0)
    """Bytes of it that are read at most; 0: it is no argument."""
    is_address: bool = False
    """Whether memory is reached by it."""


def _step(instruction: Instruction, holders: dict[int, _Argument]) -> None:
    """Note what an instruction reads of the arguments, and which registers hold them behind it."""
    from iced_x86 import Mnemonic, OpAccess, OpKind, RegisterExt

    full = RegisterExt.full_register
    reads_only = (OpAccess.READ, OpAccess.COND_READ)
    base = holders.get(full(instruction.memory_base))
    if base is not None and instruction.mnemonic not in (Mnemonic.LEA, Mnemonic.NOP):
        base.size, base.is_address = max(base.size, 8), True
    is_copy = (
        instruction.mnemonic in (Mnemonic.MOV, Mnemonic.MOVSXD)
        and instruction.op0_kind == instruction.op1_kind == OpKind.REGISTER
    )
    copied = holders.get(full(instruction.op1_register)) if is_copy else None
    written = []
    for used in _factory().info(instruction).used_registers():
        register, argument = full(used.register), holders.get(full(used.register))
        if used.access not in (OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.NONE, OpAccess.NO_MEM_ACCESS) and argument:
            argument.size = max(argument.size, min(RegisterExt.size(used.register), 8))
        if used.access not in (*reads_only, OpAccess.NONE, OpAccess.NO_MEM_ACCESS):
            written.append(register)
    for register in written:
        holders.pop(register, None)
    if copied is not None:
        holders[full(instruction.op0_register)] = copied
