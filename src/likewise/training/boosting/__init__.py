"""Boosted trees grown on their own worst cases, behind the scikit-learn contract; works without torch."""
