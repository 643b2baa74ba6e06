"""A host of the durability model from the facts of an audit: what is in force now, and what the next boot puts in force.

To be read in this order: reading (a fact as a field), stores (drives, and what lies above them), pools,
host (databases, and all of it with datasets), grounds (the facts behind a reason of the model).
"""
