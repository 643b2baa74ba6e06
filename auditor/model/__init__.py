"""Facts from facts, one module a subject of the field. A derivation is a function that derivation.py makes one of."""
