"""Tables as their owners mean them: files of any common format, what their columns are, what is missing in them."""
