"""What zaudit recommends: the properties of a dataset for a database, and whether a log device would help. Pure."""
