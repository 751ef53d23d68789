"""The finite search: people of the table, their edits and their proxies as candidates."""
