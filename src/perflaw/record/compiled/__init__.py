"""How compiled programs are recorded: hooks, coverage counters, and what ELF and DWARF say of a file."""
