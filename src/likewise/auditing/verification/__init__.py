"""What is proved about everybody who could exist, and what asking the model adds to it."""
