"""The gradient search: two phases per row, along free directions and with the penalty."""
