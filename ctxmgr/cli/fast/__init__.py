"""The fast path from a command line to a command, without typer, pydantic or rich where they are not needed.

Begin with `dispatch`. `table` holds every command and is generated from the declarations by ``python -m
ctxmgr.cli.fast.generate``. May import whatever does not load those three at the top of a module.

The commands that agents and hooks call at every step have a handler on plain rows, in `rows` and `detection`: ``list``,
``trace``, ``show``, ``messages``, ``search``, ``note add``, ``note list``, ``note search``, ``snapshot create``,
``snapshot list``, ``record``, ``sessions`` and ``detect``. It answers people and programs, whoever has read the words. The
function of such a command in `commands` declares its options, and has no work of its own but what the handler hands over.

One command has two answers: `detection.recover` gives a cached one again, and hands over to the function of ``recover`` where
there is none, since the recovery loads what takes ten times as long. What takes a folder, a labelled set or one entry apart in
``detect``, and ``record -- CMD``, is other work and stands in `commands`.
"""
