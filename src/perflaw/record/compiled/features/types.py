"""The features of a variable, by its type: numbers, what pointers point to, fields, lengths, sums, dynamic types.

Names are as in Python programs: a field is ``box.width``, a size ``items.len``. A pointer or reference has the name of what
it points to, because its own value says nothing of costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING, Final

from perflaw.record.compiled.dwarf import name_of, with_attribute
from perflaw.record.compiled.features.locations import (
    Address,
    Computed,
    InMemory,
    InRegister,
    Location,
    Pieces,
    Unlocated,
)
from perflaw.record.compiled.features.programs import FeatureSource, Kind, Spot, Term, register_spot

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE

MAX_FEATURES: Final = 64
MAX_DEPTH: Final = 2
"""Fields of fields are read, and no deeper ones."""
MAX_FIELDS: Final = (48, 16, 16)
"""Of an argument or what it points to, of its fields, of theirs: SQLite's statement has its size in its 22nd field."""
_MAX_ARRAY: Final = 1024
"""Bytes of the largest array that is added up."""
_QUALIFIERS: Final = ("const", "volatile", "restrict", "atomic")
_WRAPPERS: Final = ("DW_TAG_typedef", *(f"DW_TAG_{word}_type" for word in _QUALIFIERS))
POINTERS: Final = tuple(f"DW_TAG_{word}" for word in ("pointer_type", "reference_type", "rvalue_reference_type"))
"""Tags of pointers and references."""
CLASSES: Final = ("DW_TAG_structure_type", "DW_TAG_class_type")
"""Tags of classes."""
_ENCODINGS: Final = {2: Kind.UNSIGNED, 4: Kind.FLOATING, 5: Kind.SIGNED, 6: Kind.SIGNED, 7: Kind.UNSIGNED, 8: Kind.UNSIGNED,
                     16: Kind.UNSIGNED}  # fmt: skip
"""DW_ATE_boolean, float, signed, signed_char, unsigned, unsigned_char, UTF."""
_SIZES: Final = {**dict.fromkeys(("map", "multimap", "set", "multiset"), ("_M_node_count", "__pair3_", "__size_")),
                 **dict.fromkeys(("unordered_map", "unordered_multimap", "unordered_set", "unordered_multiset"),
                                 ("_M_element_count", "__p2_", "__size_")),
                 "list": ("_M_size", "__size_alloc_", "__size_"), "basic_string": ("_M_string_length",),
                 "basic_string_view": ("_M_len", "__size", "__size_"), "deque": ("__size_",), "vector": ("__size_",),
                 "span": ("_M_extent_value", "__size", "__size_")}  # fmt: skip
"""Class template → its field that begins with the number of elements, in libstdc++ and in versions of libc++."""
_HOLDERS: Final = {"unique_ptr": ("_M_head_impl", "__value_", "__ptr_"), "shared_ptr": ("_M_ptr", "__ptr_")}
_ADAPTERS: Final = ("stack", "queue", "priority_queue")
_STRING_LENGTH: Final = 8
"""Offset of the length in ``std::__cxx11::basic_string``, which clang declares without its fields; its layout is fixed."""
_LIBCPP: Final = re.compile("__(ndk)?[0-9]+")
"""The namespace within ``std`` of everything in libc++."""
_VECTORS: Final = (("_M_start", "_M_finish"), ("__begin_", "__end_"))
"""Fields of a vector that point to its begin and behind its end."""
_DEQUE_BUFFER: Final = 512
_BOUNDS: Final = (("begin", "start"), ("end", "stop", "finish")), (("lo", "low"), ("hi", "high")), (("first",), ("last",)), (
    ("left",), ("right",)), (("min",), ("max",))  # fmt: skip
"""Words that stand for lower and upper bounds in names that are otherwise the same."""


@dataclass(slots=True)
class Explorer:
    """Finds the features of the variables of one call, breadth first, so that those of the variables themselves come first."""

    features: list[FeatureSource] = field(default_factory=list)
    """Found so far."""
    _later: list[tuple[str, DIE, Spot, int, int]] = field(default_factory=list)
    _bounds: dict[tuple[str, str], tuple[Spot, int, int]] = field(default_factory=dict)
    _pieces: list[tuple[tuple[int, int, Spot], ...]] = field(default_factory=list)
    """(first byte, bytes, where they are) of each part of the variables that are in several places."""

    def add(self, name: str, variable_type: DIE | None, place: Location) -> None:
        """Explore a variable; nothing is added if it cannot be read."""
        kind = stripped(variable_type)
        if kind is None:
            return
        if isinstance(place, InRegister):
            if (size_of(kind) or 99) <= 8 or kind.tag in POINTERS:
                self._later.append((name, kind, register_spot(place.register), 0, 0))
        elif isinstance(place, InMemory):
            self._later.append((name, kind, spot_of(place.address), 0, 0))
        elif isinstance(place, Computed) and kind.tag in POINTERS:
            target, spot = stripped(type_of(kind)), spot_of(place.address)
            if target is not None and spot.pointer is not None:
                self._pointee(name, target, spot.pointer, spot.offset, 0)
        elif isinstance(place, Pieces):
            # It is explored as if it was whole, behind an address that is in no register.
            self._later.append((name, kind, Spot(Spot(None, -1 - len(self._pieces)), 0), 0, 0))
            ends = accumulate(size for size, _ in place.parts)
            spots = (
                register_spot(one.register) if isinstance(one, InRegister) else spot_of(one.address)
                for _, one in place.parts
            )
            sizes = (size for size, _ in place.parts)
            self._pieces.append(
                tuple((end - size, size, spot) for end, size, spot in zip(ends, sizes, spots, strict=True))
            )

    def finish(self) -> tuple[FeatureSource, ...]:
        """Everything that was found, differences of bounds too."""
        while self._later and len(self.features) < MAX_FEATURES:
            self._explore(*self._later.pop(0))
        self.features += self._differences()
        known: dict[str, FeatureSource] = {}
        for feature in self.features:
            with suppress(Unlocated):
                known.setdefault(feature.name, self._in_place(feature))
        return tuple(known.values())[:MAX_FEATURES]

    def _in_place(self, feature: FeatureSource) -> FeatureSource:
        """The feature with its bytes where they are, if they are in a part of a variable; Unlocated if they are in two."""
        if not self._pieces:
            return feature
        terms = tuple(
            replace(
                term,
                high=self._piece(term.high, term.size),
                low=self._piece(term.low, term.size) if term.low is not None else None,
            )
            for term in feature.terms
        )
        if feature.kind == Kind.COMBINATION:
            return replace(feature, terms=terms, spot=Spot(None, 0))
        [(spot, size)] = feature.needed()
        return replace(feature, spot=self._piece(spot, size))

    def _piece(self, spot: Spot, size: int) -> Spot:
        """Where the bytes at a spot are."""
        if spot.pointer is None:
            if spot.offset < 0:  # the address that it has not
                raise Unlocated
            return spot
        if spot.pointer.pointer is not None or spot.pointer.offset >= 0:
            return replace(spot, pointer=self._piece(spot.pointer, 8))
        for begin, length, place in self._pieces[-1 - spot.pointer.offset]:
            if begin <= spot.offset and spot.offset + size <= begin + length:
                return place.plus(spot.offset - begin)
        raise Unlocated

    def _found(self, name: str, kind: Kind, spot: Spot, **more: object) -> None:
        self.features.append(FeatureSource(name, kind, spot, **more))  # type: ignore[arg-type]  # fields of FeatureSource

    def _explore(self, name: str, kind: DIE, spot: Spot, depth: int, constant: int) -> None:
        """One value; ``constant`` is not used but for pointees."""
        number, size = number_of(kind), size_of(kind)
        if number is not None and size:
            label = f"{name}.value" if name.endswith(".type") else name
            self._found(label, number, spot, size=size)
            if number != Kind.FLOATING:
                self._bound(name, spot, size, 1)
        elif kind.tag in POINTERS:
            target = stripped(type_of(kind))
            if target is not None:
                if kind.tag == "DW_TAG_pointer_type" and (element := size_of(target)):
                    self._bound(name, spot, 8, element)
                self._pointee(name, target, spot, constant, depth)
        elif kind.tag == "DW_TAG_array_type":
            self._array(name, kind, spot)
        elif kind.tag in CLASSES:
            self._object(name, kind, spot, depth)

    def _pointee(self, name: str, target: DIE, pointer: Spot, offset: int, depth: int) -> None:
        if target.tag in POINTERS and depth >= MAX_DEPTH:
            return
        if number_of(target) == Kind.SIGNED and size_of(target) == 1 and name_of(target) == "char":
            self._found(f"{name}.len", Kind.TEXT_LENGTH, pointer, count=0, constant=offset)
        elif target.tag in POINTERS:
            self._later.append((name, target, Spot(pointer, offset), MAX_DEPTH, 0))
        else:
            self._later.append((name, target, Spot(pointer, offset), depth, 0))

    def _array(self, name: str, kind: DIE, spot: Spot) -> None:
        """A fixed array: its length and its sum; an array of characters is a text."""
        element, count = stripped(type_of(kind)), prod(extents(kind))
        if not count:
            return
        if element is None or (number := number_of(element)) is None or not (size := size_of(element)):
            return
        if size == 1 and name_of(element) == "char":
            if spot.pointer is not None:
                self._found(f"{name}.len", Kind.TEXT_LENGTH, spot.pointer, count=count, constant=spot.offset)
            return
        self._found(f"{name}.len", Kind.COMBINATION, spot, constant=count)
        if count * size <= _MAX_ARRAY:
            summed = {Kind.UNSIGNED: Kind.UNSIGNED_SUM, Kind.SIGNED: Kind.SIGNED_SUM}.get(number, Kind.FLOATING_SUM)
            self._found(f"{name}.sum", summed, spot, size=size, count=count)

    def _object(self, name: str, kind: DIE, spot: Spot, depth: int) -> None:
        template = name_of(kind).partition("<")[0]
        if _namespaces(kind)[:1] == ("std",) and self._container(name, template, kind, spot, depth):
            return
        if depth > MAX_DEPTH:
            return
        for label, table, _ in fields_of(kind)[: MAX_FIELDS[depth]]:
            if label.startswith("_vptr"):
                self._found(f"{name}.type", Kind.DYNAMIC_TYPE, spot.plus(table))
                break
        if depth == MAX_DEPTH:
            return
        for label, offset, member in fields_of(kind)[: MAX_FIELDS[depth]]:
            if label.startswith("_vptr"):
                continue
            path = f"{name}.{label}"
            if "DW_AT_bit_size" in member.attributes:
                self._bit_field(path, member, spot)
            elif (inner := stripped(type_of(member))) is not None:
                self._later.append((path, inner, spot.plus(offset), depth + 1, 0))

    def _bit_field(self, name: str, member: DIE, spot: Spot) -> None:
        kind, bits = stripped(type_of(member)), member.attributes["DW_AT_bit_size"].value
        first = member.attributes.get("DW_AT_data_bit_offset")
        number = number_of(kind) if kind is not None else None
        if first is None or number in (None, Kind.FLOATING) or first.value % 8 + bits > 64:
            return
        at, shift = divmod(first.value, 8)
        size = next(size for size in (1, 2, 4, 8) if 8 * size >= shift + bits)
        self._found(name, Kind(number), spot.plus(at), size=size, shift=shift, bits=bits)

    def _container(self, name: str, template: str, kind: DIE, spot: Spot, depth: int) -> bool:
        """A class of the standard library of which a size is known. Gives whether it is one."""
        parts: dict[str, tuple[int, DIE]] = {}
        for label, at, member in _flattened(kind):
            parts.setdefault(label, (at, member))
        size = next((one for one in _SIZES.get(template, ()) if one in parts), None)
        bounds = next((pair for pair in _VECTORS if pair[0] in parts and pair[1] in parts), None)
        if size:
            self._found(f"{name}.len", Kind.UNSIGNED, spot.plus(parts[size][0]))
        elif template == "basic_string":
            if _LIBCPP.fullmatch(_namespaces(kind)[-1]):
                self._found(f"{name}.len", Kind.STRING_LENGTH, spot)
            elif _namespaces(kind)[-1] == "__cxx11":
                self._found(f"{name}.len", Kind.UNSIGNED, spot.plus(_STRING_LENGTH))
        elif template == "vector" and bounds:
            start, member = parts[bounds[0]]
            element = size_of(stripped(type_of(stripped(type_of(member)))))
            if element:
                term = Term(spot.plus(parts[bounds[1]][0]), spot.plus(start), 8, element)
                self._found(f"{name}.len", Kind.COMBINATION, spot, terms=(term,))
        elif template == "deque" and (terms := _deque_terms(kind, spot)):
            self._found(f"{name}.len", Kind.COMBINATION, spot, terms=terms, constant=-terms[0].factor)
        elif template in _HOLDERS:
            for label, at, member in _flattened(kind):
                inner = stripped(type_of(member))
                if label in _HOLDERS[template] and inner is not None and inner.tag in POINTERS:  # not what deletes it
                    self._later.append((name, inner, spot.plus(at), depth, 0))
                    break
        elif template in _ADAPTERS or template == "array":
            for label, offset, member in fields_of(kind):
                if label in ("c", "_M_elems", "__elems_") and (inner := stripped(type_of(member))) is not None:
                    self._later.append((name, inner, spot.plus(offset), depth, 0))
        else:
            return False
        return True

    def _bound(self, name: str, spot: Spot, size: int, divisor: int) -> None:
        """Remember a number whose name says that it is a lower or an upper bound."""
        if any(side.endswith(f" {name}") for _, side in self._bounds):
            return  # what a pointer points to has the pointer's name
        front, dot, last = name.rpartition(".")
        for family, (lower, upper) in enumerate(_BOUNDS):
            for side, words in (("low", lower), ("high", upper)):
                for word in words:
                    parts = last.split("_")
                    if word in parts:
                        rest = "_".join("*" if part == word else part for part in parts)
                        self._bounds[f"{front}{dot}{rest} {family} {divisor}", side + " " + name] = spot, size, divisor

    def _differences(self) -> Iterator[FeatureSource]:
        """Upper less lower bound, where both are there: usually a size."""
        keys = {key for key, _ in self._bounds}
        for key in sorted(keys):
            low = [(side[4:], place) for (of, side), place in self._bounds.items() if of == key and side[:3] == "low"]
            high = [(side[5:], place) for (of, side), place in self._bounds.items() if of == key and side[:4] == "high"]
            for (lower, (low_spot, size, divisor)), (upper, (high_spot, other, _)) in product(low, high):
                if size == other:
                    term = Term(high_spot, low_spot, size, divisor)
                    yield FeatureSource(f"{upper}-{lower}", Kind.COMBINATION, high_spot, terms=(term,))


def spot_of(address: Address) -> Spot:
    """The spot at an address; Unlocated if its register is not kept."""
    spot = register_spot(address.base)
    for offset in address.offsets:
        spot = Spot(spot, offset)
    return spot


@cache
def type_of(entry: DIE | None) -> DIE | None:
    """The type that an entry names, at itself or where it refers to; None for void."""
    holder = with_attribute(entry, "DW_AT_type")
    return holder.get_DIE_from_attribute("DW_AT_type") if holder is not None else None


@cache
def stripped(kind: DIE | None) -> DIE | None:
    """A type without its typedefs and qualifiers; None for void."""
    while kind is not None and kind.tag in _WRAPPERS:
        kind = type_of(kind)
    return kind


def forget_types() -> None:
    """Forget the entries of a file that is closed: functions share types, so what is known of these is kept until then."""
    for remembering in (type_of, stripped, fields_of):
        remembering.cache_clear()


def is_constant(kind: DIE | None) -> bool:
    """Whether a variable of this type never changes."""
    while kind is not None and kind.tag in (*_WRAPPERS, "DW_TAG_array_type"):
        if kind.tag == "DW_TAG_const_type":
            return True
        kind = type_of(kind)
    return False


def size_of(kind: DIE | None) -> int | None:
    """Bytes of a type; None if that is not known."""
    if kind is None:
        return None
    attribute = kind.attributes.get("DW_AT_byte_size")
    return int(attribute.value) if attribute else 8 if kind.tag in POINTERS else None


def number_of(kind: DIE | None) -> Kind | None:
    """How to read a number of this type; None if it is none."""
    if kind is None:
        return None
    size = size_of(kind)
    if kind.tag == "DW_TAG_enumeration_type" and size in (1, 2, 4, 8):
        return number_of(stripped(type_of(kind))) or Kind.SIGNED
    if kind.tag != "DW_TAG_base_type":
        return None
    number = _ENCODINGS.get(kind.attributes["DW_AT_encoding"].value)
    sizes = (4, 8, 16) if number == Kind.FLOATING else (1, 2, 4, 8)
    return number if size in sizes else None


def extents(kind: DIE) -> tuple[int, ...]:
    """Elements of an array in each dimension; ``(0,)`` if they are not fixed."""
    found = []
    for bound in (child for child in kind.iter_children() if child.tag == "DW_TAG_subrange_type"):
        upper, total = bound.attributes.get("DW_AT_upper_bound"), bound.attributes.get("DW_AT_count")
        extent = total.value if total else upper.value + 1 if upper else None
        if not isinstance(extent, int) or extent <= 0:
            return (0,)
        found.append(extent)
    return tuple(found)


def offset_of(member: DIE, kind: DIE) -> int | None:
    """Bytes before a member of a class; None if that is not fixed."""
    attribute = member.attributes.get("DW_AT_data_member_location")
    if attribute is None:
        return 0 if "DW_AT_data_bit_offset" in member.attributes or kind.tag == "DW_TAG_union_type" else None
    return attribute.value if isinstance(attribute.value, int) else None  # an expression: a virtual base


@cache
def fields_of(kind: DIE) -> tuple[tuple[str, int, DIE], ...]:
    """(name, offset, entry) of the fields of a class, those of its bases and of anonymous members among them."""
    found: list[tuple[str, int, DIE]] = []
    for member in kind.iter_children():
        if member.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or "DW_AT_external" in member.attributes:
            continue
        offset, label = offset_of(member, kind), name_of(member) if "DW_AT_name" in member.attributes else ""
        if offset is None:
            continue
        inner = stripped(type_of(member))
        if label and member.tag == "DW_TAG_member":
            found.append((label, offset, member))
        elif inner is not None and inner.tag in (*CLASSES, "DW_TAG_union_type"):
            found += [(name, offset + at, entry) for name, at, entry in fields_of(inner)]
    return tuple(found)


def _flattened(kind: DIE, depth: int = 7) -> Iterator[tuple[str, int, DIE]]:
    """All fields of a class, then those of its members and bases, and so on: name, offset, entry."""
    level = [(0, kind)]
    while level and depth:
        found = [(label, base + at, member) for base, one in level for label, at, member in fields_of(one)]
        yield from found
        inner = [(at, stripped(type_of(member))) for _, at, member in found]
        level = [(at, one) for at, one in inner if one is not None and one.tag in CLASSES]
        depth -= 1


def _deque_terms(kind: DIE, spot: Spot) -> tuple[Term, ...]:
    """Full buffers between the ends of a deque, and what lies in those at the ends."""
    iterators = {label: at for label, at, _ in _flattened(kind) if label in ("_M_start", "_M_finish")}
    inner = {label: member for label, _, member in _flattened(kind)}
    if len(iterators) < 2 or "_M_cur" not in inner:
        return ()
    element = size_of(stripped(type_of(stripped(type_of(inner["_M_cur"])))))
    if not element:
        return ()
    start, finish = spot.plus(iterators["_M_start"]), spot.plus(iterators["_M_finish"])
    buffer = max(1, _DEQUE_BUFFER // element)
    cur, first, last, node = 0, 8, 16, 24  # of _Deque_iterator
    return (
        Term(finish.plus(node), start.plus(node), 8, 8, buffer),
        Term(finish.plus(cur), finish.plus(first), 8, element),
        Term(start.plus(last), start.plus(cur), 8, element),
    )


def _namespaces(kind: DIE) -> tuple[str, ...]:
    """The namespaces that a class stands in, from the outermost."""
    scope, names = kind.get_parent(), list[str]()
    while scope is not None and scope.tag == "DW_TAG_namespace":
        names.append(name_of(scope))
        scope = scope.get_parent()
    return tuple(reversed(names))
