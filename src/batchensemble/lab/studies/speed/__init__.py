"""How fast an ensemble is, compared with the plain network, independent networks and other libraries."""
