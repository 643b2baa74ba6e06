"""Many hosts: their recordings judged by the rules of today, as rows that any store reads.

``judging`` makes the rows of one recording and is a pure function; ``workers`` and ``cluster`` call it in many processes at
once, on one machine or several; ``inputs`` finds the recordings and ``accounting`` sees that each comes out again. What the
rows say together is ``auditor/report/fleet``.
"""
