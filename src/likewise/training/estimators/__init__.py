"""Scikit-learn classifiers of networks: the methods of the paper and others, all on the one training loop."""
