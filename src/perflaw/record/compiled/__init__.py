"""How a compiled program is recorded: calls by hooks (``hooks``), lines by gcc's coverage (``gcov``), names from DWARF."""
