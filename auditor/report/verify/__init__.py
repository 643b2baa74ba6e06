"""The report of a verification: one module a format, and its parts."""
