"""The policies that come with perflaw; ``explore/registry.py`` finds them by name."""
