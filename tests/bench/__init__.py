"""Speed: figures beside their targets, not tests. ``make bench``, or ``python -m tests.bench [RECORDING]``."""
