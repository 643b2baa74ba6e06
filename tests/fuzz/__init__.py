"""Fuzzing: every reader of zaudit is given answers that no tool should give; a whole audit one or two answers that are lost or
lack a piece (``loss``, ``loss2``), and hostile names (``names``).

``make fuzz MINUTES=n`` runs it; what it finds is made small and kept in ``found.jsonl``, which ``pytest`` replays for ever.
"""
