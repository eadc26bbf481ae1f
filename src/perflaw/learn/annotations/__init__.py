"""Annotations (Freud §3.2): regression trees with scope conditions, mixtures with probabilities. Arrays in, laws out."""

from perflaw.learn.annotations.annotate import annotate
from perflaw.learn.annotations.table import AnnotationOptions

__all__ = ["AnnotationOptions", "annotate"]
