"""ReLU networks: linear bounds by back-substitution over a region."""
