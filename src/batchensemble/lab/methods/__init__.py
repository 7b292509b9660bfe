"""What is compared: one folder per kind of problem, one Protocol per folder, one file per method."""
