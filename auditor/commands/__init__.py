"""The commands, a module for each group of them; ``auditor.cli`` imports that of the one that is asked for.

Heavy modules are imported inside the functions, so that a command that needs no host starts at once.
"""
