"""Execution counts: written by recorders, read by ``perflaw trend``. All of it in one place to import from."""

from perflaw.store.count_csv import read_csv_matrix
from perflaw.store.count_matrix import read_matrix
from perflaw.store.count_tables import read_counts, read_sources, write_counts

__all__ = ["read_counts", "read_csv_matrix", "read_matrix", "read_sources", "write_counts"]
