"""The laboratory: every table and figure of the paper."""
