"""Power cuts as the ground truth: does zaudit's verdict predict what is left? See matrix.toml, cut.py and report.py."""
