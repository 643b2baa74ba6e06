"""What the rows of many hosts come to: read and counted in ``counting``, told on a terminal or as one page."""
