"""Results of other tools' benchmarks: pytest-benchmark, asv, google-benchmark."""

from perflaw.store.importers.benchmarks import Benchmarks
from perflaw.store.importers.recognise import is_json, read_benchmarks

__all__ = ["Benchmarks", "is_json", "read_benchmarks"]
