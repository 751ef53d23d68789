"""Scorers of text: edits that should not matter, placebos that cannot, and what moves above the noise."""
