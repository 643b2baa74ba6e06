from tests.corpus import CORPUS

collect_ignore_glob = [] if CORPUS.is_dir() else ["test_*.py"]
