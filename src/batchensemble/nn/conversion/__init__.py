"""Converting a network: which layers, to what, and how they are swapped in and out."""
