"""Failure classes of refusals: a validator, a limit, a login, a right, or a person says no."""
