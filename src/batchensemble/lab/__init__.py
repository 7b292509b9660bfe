"""The laboratory: reruns every table and figure of the paper."""
