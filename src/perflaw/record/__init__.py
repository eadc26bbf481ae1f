"""Programs in, recordings out.

The story of one recording: ``plan`` (which runs) → ``session`` (one after the other) → ``tracers`` (what records the
command that ``launch`` understood) → ``run`` (the program runs while its records are read) → ``saving`` (the manifest and
the tables of each process). How a Python program is recorded is in ``python/``, how a compiled one is in ``compiled/``, how
events become a call tree and its tables in ``tree/``, probes in ``probes/``.
"""
