"""Do the tests of ``auditor/judge/`` notice when it is wrong? One small change at a time is made to it, and the tests are run:
``make mutants`` (README: CONTRIBUTING.md)."""
