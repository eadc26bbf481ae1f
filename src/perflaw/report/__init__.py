"""Nouns in, text out: terminal, JSON, HTML. Formatting only, no statistics."""
