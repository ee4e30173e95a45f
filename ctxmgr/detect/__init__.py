"""Observations in, findings out; one pattern a module. Pure: no store, and no clock but what is passed in."""
