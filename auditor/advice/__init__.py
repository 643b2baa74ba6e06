"""What zaudit recommends: properties for a database, a log device, and the steps of a plan in order. Nothing of it is run."""
