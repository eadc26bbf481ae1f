"""Annotations (Freud §3.2): laws with conditions from regression trees, mixtures with probabilities. Arrays in, laws out.

The way of the data: evidence → cells → laws (``call_laws``) → leaves of a tree (``tree``) → scopes (``scopes``) → annotation
(``annotate``).
"""

from perflaw.learn.annotations.annotate import annotate
from perflaw.learn.annotations.options import AnnotationOptions

__all__ = ["AnnotationOptions", "annotate"]
