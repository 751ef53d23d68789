"""All people who could exist: where a decision cannot depend on the sensitive columns."""
