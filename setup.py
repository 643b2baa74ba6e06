"""Packing: rules and tables are compiled into one file (auditor/data/__init__.py); ``make compiled`` does it in a checkout."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent))

from auditor import data


class Build(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            Path(self.build_lib, "auditor/data", data.COMPILED).write_text(data.compiled(installed=True))


if __name__ == "__main__":
    setup(cmdclass={"build_py": Build})
