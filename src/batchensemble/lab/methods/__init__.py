"""The methods that are compared: a folder per kind of problem, with one interface and a file per method.

To add one, write a file like its neighbours, name it in the folder's `METHODS` (records store that name), and list it
in the folder's tests, which ask the same of every method. Experiments can then use it.
"""
