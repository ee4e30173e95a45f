"""Data classes without `dataclasses`, whose import and decorator take longer than most commands.

For the supported options, the decorator behaves like the one of the standard library, and the functions of `dataclasses` work
with its classes. Only the time of compilation differs: ``__init__`` is compiled when the first instance is created.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import Any
else:
    _NO_DEFAULT = object()

    class _Field:
        """The declaration of a field."""

        __slots__ = ("compare", "default", "init", "make", "repr")

        def __init__(self, default: Any, make: Any, init: bool, repr: bool, compare: bool) -> None:  # noqa: A002 -- as there
            self.default, self.make, self.init, self.repr, self.compare = default, make, init, repr, compare

    class _Fields:
        """The ``__dataclass_fields__`` of a class, created when `dataclasses` reads it."""

        def __get__(self, _: object, cls: Any) -> dict[str, Any]:
            import dataclasses

            made: dict[str, Any] = {}
            for name, (annotation, own) in cls.__light_fields__.items():
                options = {"init": own.init, "repr": own.repr, "compare": own.compare}
                options |= {} if own.make is _NO_DEFAULT else {"default_factory": own.make}
                made[name] = dataclasses.field(**options, **({} if own.default is _NO_DEFAULT else {"default": own.default}))
                # The decorator of the standard library sets these attributes. Its functions skip a field without them.
                made[name].name, made[name].type, made[name]._field_type = name, annotation, dataclasses._FIELD
            return made

    def field(
        *,
        default: Any = _NO_DEFAULT,
        default_factory: Any = _NO_DEFAULT,
        init: bool = True,
        repr: bool = True,  # noqa: A002
        compare: bool = True,
    ) -> Any:
        """Return the declaration of a field; see `dataclasses.field`."""
        return _Field(default, default_factory, init, repr, compare)

    def dataclass(cls: Any = None, /, *, frozen: bool = False, slots: bool = False) -> Any:
        """Turn a class with annotations into a data class; see `dataclasses.dataclass`."""
        return (lambda decorated: _make_class(decorated, frozen, slots)) if cls is None else _make_class(cls, frozen, slots)

    def replace(instance: Any, /, **changes: Any) -> Any:
        """Return a copy with some fields changed."""
        fields = type(instance).__light_fields__.items()
        unchanged = {name: getattr(instance, name) for name, (_, own) in fields if own.init and name not in changes}
        return type(instance)(**unchanged, **changes)

    def _make_class(cls: Any, frozen: bool, slots: bool) -> Any:
        own = vars(cls).get("__annotations__", {})
        fields = dict(getattr(cls, "__light_fields__", {}))
        inherited = set(fields)
        for name, annotation in own.items():
            if not annotation.startswith("ClassVar"):
                default = cls.__dict__.get(name, _NO_DEFAULT)
                fields[name] = (
                    annotation,
                    default if isinstance(default, _Field) else _Field(default, _NO_DEFAULT, True, True, True),
                )
        if slots:
            # A class can't get slots later, and a default conflicts with the slot of the same name, so create a new class.
            left_out = {"__dict__", "__weakref__", *fields}
            body = {name: value for name, value in cls.__dict__.items() if name not in left_out}
            body["__slots__"] = tuple(name for name in fields if name not in inherited)
            cls = type(cls)(cls.__name__, cls.__bases__, {**body, "__qualname__": cls.__qualname__})
        else:
            for name in own:
                if isinstance(default := cls.__dict__.get(name), _Field):
                    delattr(cls, name)
                    if default.default is not _NO_DEFAULT:
                        setattr(cls, name, default.default)
        cls.__light_fields__, cls.__dataclass_fields__ = fields, _Fields()
        cls.__match_args__ = tuple(name for name, (_, own) in fields.items() if own.init)
        _add_methods(cls, frozen)
        return cls

    def _add_methods(cls: Any, frozen: bool) -> None:
        names = tuple(cls.__light_fields__)
        fields = cls.__light_fields__.items()
        compared = tuple(name for name, (_, own) in fields if own.compare)
        shown_fields = tuple(name for name, (_, own) in fields if own.repr)

        def first(self: Any, *arguments: Any, **named: Any) -> None:
            # Compiling is the expensive part, and most classes that a command loads are never instantiated.
            cls.__init__ = _initialiser(cls, frozen)
            cls.__init__(self, *arguments, **named)

        def values(self: Any) -> tuple[Any, ...]:
            return tuple(getattr(self, name) for name in compared)

        def equal(self: Any, other: object) -> Any:
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def shown(self: Any) -> str:
            return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown_fields)})"

        def refuse(self: Any, name: str, *_: object) -> None:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")

        methods = {"__init__": first, "__repr__": shown, "__eq__": equal}
        methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
        methods |= {"__setattr__": refuse, "__delattr__": refuse} if frozen else {}
        if frozen:  # pickle would set attributes, which a frozen class with slots refuses
            methods["__getstate__"] = lambda self: [getattr(self, name) for name in names]
            methods["__setstate__"] = lambda self, state: [object.__setattr__(self, *pair) for pair in zip(names, state)]  # noqa: B905
        for name, method in methods.items():
            # A class with its own ``__eq__`` already has a ``__hash__`` of None, which must be replaced.
            if name not in cls.__dict__ or name == "__hash__":
                setattr(cls, name, method)

    def _initialiser(cls: Any, frozen: bool) -> Any:
        """Return the compiled ``__init__`` of a class."""
        known: dict[str, Any] = {"_set": object.__setattr__, "_NO_DEFAULT": _NO_DEFAULT}
        parameters, lines = ["self"], []
        for place, (name, (_, own)) in enumerate(cls.__light_fields__.items()):
            known[f"_default_{place}"] = own.default if own.make is _NO_DEFAULT else own.make
            anew, value = f"_default_{place}()", name
            if not own.init:
                value = f"_default_{place}" if own.make is _NO_DEFAULT else anew
            elif own.make is not _NO_DEFAULT:
                parameters.append(f"{name}=_NO_DEFAULT")
                value = f"{anew} if {name} is _NO_DEFAULT else {name}"
            else:
                parameters.append(name if own.default is _NO_DEFAULT else f"{name}=_default_{place}")
            # Defaults are passed into the compiled code by name, so the code contains names of fields but no values.
            lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
        lines += [" self.__post_init__()"] if hasattr(cls, "__post_init__") else []
        exec(f"def __init__({', '.join(parameters)}):\n" + ("\n".join(lines) or " pass"), known)
        return known["__init__"]
