"""Specifications of call paths as text: edges, paths and expressions over edges, and files for review."""
