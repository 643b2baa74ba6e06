"""The machine: how a question is put to it, live, and what comes back. A review of safety reads this folder."""
