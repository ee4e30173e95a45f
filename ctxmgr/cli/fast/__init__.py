"""The fast path from a command line to a command, without typer, pydantic or rich where they are not needed.

Start with `dispatch`. `table` holds every command and is generated from the declarations by ``python -m
ctxmgr.cli.fast.generate``. This package may import modules that do not load those three at their top.

The commands that agents and hooks call at every step have a handler on plain rows, in `rows`, `annotations` and `detection`:
``list``, ``trace``, ``show``, ``messages``, ``search``, ``note add``, ``note list``, ``note search``, ``snapshot create``,
``snapshot list``, ``record``, ``sessions`` and ``detect``. The handler answers people and programs, whether the table or typer
has read the words. The function of such a command in `commands` declares its options and leaves all work to the handler, except
the work that the handler returns to it.

One command has two answers. `detection.recover` repeats a cached answer. Without one, the function of ``recover`` runs the
recovery, which takes ten times as long to load. The forms of ``detect`` for a folder or a labelled set, and ``record -- CMD``,
are in `commands`.
"""
