"""``zaudit plan``: the steps that make a host better, in an order in which none makes it worse. Nothing of it is run."""
