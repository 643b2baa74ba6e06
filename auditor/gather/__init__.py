"""The walk over a host: which collector is asked about which subject, in which order."""
