"""Does zaudit keep its one law on this very installation: nothing that was not seen is called fine?

A small recorded host is audited again and again with answers that are missing, refused, cut off, late, empty or of a
release that nobody knows; and each rule is judged on its own examples with facts hidden. No rule may pass by it.
"""
