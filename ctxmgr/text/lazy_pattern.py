"""Regular expressions that are compiled at their first use: most of a module's are never asked in the life of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:

    class LazyPattern:
        """Stands for a compiled pattern; what is once asked of it is kept, so that later uses cost nothing more."""

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self._given = pattern, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            import re

            found = self.__dict__[name] = getattr(re.compile(*self._given), name)
            return found

    def lazy_pattern(pattern: str | bytes, flags: int = 0) -> LazyPattern:
        """Return what may stand in the place of `re.compile` of the same."""
        return LazyPattern(pattern, flags)


__all__ = ["lazy_pattern"]
