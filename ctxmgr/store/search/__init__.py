"""Search: text normalisation, the index, queries. Start with `find`."""
