"""Many hosts: their recordings judged by the rules of today, as rows that any store reads.

``workers`` makes the rows of one recording after the other in many processes, on one machine or several; ``inputs`` finds the
recordings and sees that each comes out again. What the rows say together is counted, and is a page.
"""
