"""Fuzzing: every reader of zaudit is given answers that no tool should give, and a whole audit answers that lost a piece.

``make fuzz MINUTES=n`` runs it; what it finds is made small and kept in ``found/``, which ``pytest`` replays for ever.
"""
