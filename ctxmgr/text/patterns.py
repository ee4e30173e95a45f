"""Regular expressions that are compiled at their first use, and sets of words: what a module that reads text declares first.

A command never uses most of the expressions in its modules. Words are written as prose instead of columns of quotes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:

    class LazyPattern:
        """Stands for a compiled pattern. Each method is stored at its first use, so later uses cost nothing more."""

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self._arguments = pattern, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # copying and pickling ask for these, which must not compile
                raise AttributeError(name)
            import re

            found = self.__dict__[name] = getattr(re.compile(*self._arguments), name)
            return found

    def lazy_pattern(pattern: str | bytes, flags: int = 0) -> LazyPattern:
        """Return an object to use like `re.compile(pattern, flags)`. The pattern is compiled at its first use."""
        return LazyPattern(pattern, flags)


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``, which spaces and line ends separate."""
    return frozenset(text.split())


__all__ = ["lazy_pattern", "word_set"]
