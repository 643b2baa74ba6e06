"""Outputs of other people's hosts, each beside what a careful reader takes from it. They are not ours to publish, so they lie
elsewhere: ``make corpus CORPUS=FOLDER``. The tests of this folder are collected only then; what they found stands as pairs in
fixtures/commands.
"""

import os
from pathlib import Path

CORPUS = Path(os.environ.get("ZAUDIT_CORPUS") or "not given")
