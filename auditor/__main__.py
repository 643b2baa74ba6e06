"""The entry of ``zaudit``, ``python -m auditor`` and ``zaudit.pyz``.

``--version`` alone is answered before anything else is imported: out of a zip archive the imports are most of the time.
"""

import sys

from auditor import __version__


def main() -> None:
    """Answer ``--version``, or hand over to the command line."""
    if sys.argv[1:] == ["--version"]:
        print(f"zaudit {__version__}")
        return
    from auditor.cli import run

    run()


if __name__ == "__main__":
    main()
