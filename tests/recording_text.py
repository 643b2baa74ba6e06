"""A recording, whatever it is in, as its text archive: what ``git diff`` shows of a .tar.gz (CONTRIBUTING.md)."""

import sys
from pathlib import Path

from auditor.recording import archive

if __name__ == "__main__":
    archive.write_text(archive.read(Path(sys.argv[1])).items(), sys.stdout.buffer)
