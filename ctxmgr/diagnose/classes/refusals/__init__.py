"""Failure classes of refusals: by a validator, a limit, a login, a permission, or a person."""
