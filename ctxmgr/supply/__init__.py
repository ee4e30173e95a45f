"""Context packages from a store: what an agent needs is found, weighed under its budget, given, recorded and explained."""
