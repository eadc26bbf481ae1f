"""Laws as expression trees (the annotation language, Freud §2.2): nouns, reader, printer, evaluation, units.

Import from the modules themselves: ``tree`` has the nouns and needs nothing but the standard library, ``reading`` needs
lark, ``evaluation`` NumPy and ``distributions`` SciPy. The package is not named ``law``, which is the decorator.
"""
