"""A checklist in every format."""
