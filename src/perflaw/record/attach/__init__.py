"""Recording a Python program that runs already: ``process`` (which one), ``injection`` (a thread in it), ``session``."""
