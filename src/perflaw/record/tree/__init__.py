"""How events become a call tree: ``records`` (the events), ``core`` (the C core) or ``builder`` (its twin), ``tables``."""
