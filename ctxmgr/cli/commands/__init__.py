"""The commands, one noun a module. `ctxmgr.cli.COMMANDS` names them all."""
