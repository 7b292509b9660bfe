"""The layers with members, and what they have in common with plain ones."""
