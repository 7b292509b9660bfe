"""The methods that are compared: a folder per kind of problem, with one Protocol and a file per method."""
