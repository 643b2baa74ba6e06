"""What the larger commands do, one module each; ``cli`` has their arguments and imports them when they run."""
