"""The methods that are compared: a folder per kind of problem, with one interface and a file per method."""
