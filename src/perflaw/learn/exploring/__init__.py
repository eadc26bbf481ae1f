"""What trials of configurations tell: surrogate, early stop, margin, noise, racing; arrays in, no files."""
