"""Whose row is it? From the user's `member=` to the rows of every layer's input."""
