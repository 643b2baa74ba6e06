"""The lab: zaudit against real OpenZFS in virtual machines. It needs root and minutes, so pytest does not run it."""
