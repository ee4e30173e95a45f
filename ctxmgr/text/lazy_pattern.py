"""Regular expressions that are compiled at their first use: most of a module's are never asked in the life of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:

    class LazyPattern:
        """Stands for a compiled pattern; its methods are kept at their first use, so that later ones cost nothing more."""

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self._arguments = pattern, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # copying and pickling ask for these: no reason to compile
                raise AttributeError(name)
            import re

            found = self.__dict__[name] = getattr(re.compile(*self._arguments), name)
            return found

    def lazy_pattern(pattern: str | bytes, flags: int = 0) -> LazyPattern:
        """Return an object to use like `re.compile(pattern, flags)`, which is compiled at its first use."""
        return LazyPattern(pattern, flags)


__all__ = ["lazy_pattern"]
