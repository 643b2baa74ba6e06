"""What leaves the house: recordings as folders and archives, and their redaction."""
