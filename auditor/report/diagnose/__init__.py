"""The reports of ``zaudit diagnose``: one module a format."""
