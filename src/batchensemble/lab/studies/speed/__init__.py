"""How fast an ensemble is beside the plain network, networks of their own, and other libraries."""
