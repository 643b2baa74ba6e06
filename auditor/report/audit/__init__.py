"""The report of an audit: one module a format, and what two reports say of each other."""
