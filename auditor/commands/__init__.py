"""The commands, one module each with its ``COMMAND``; ``auditor.cli`` imports the one that is asked for.

Heavy modules are imported inside the functions, so that a command that needs no host starts at once.
"""
