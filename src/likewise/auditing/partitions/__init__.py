"""Tables in parts: where they are worked on, what each part gives, and the one runner that puts it together."""
