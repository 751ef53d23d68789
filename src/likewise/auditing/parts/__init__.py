"""Audits of tables that are cut into parts: where parts are worked on, and how their answers are put together."""
