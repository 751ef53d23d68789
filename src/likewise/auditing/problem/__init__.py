"""What is audited: model, metric, domain and people in one coordinate system."""
