"""Kill a command, or let it fail, at every system call that changes its files, and look at what is left.

Begin reading at `bench.sweep.sweeper`; `injection` runs one process and hurts it at one call, `commands` says what is swept
and `checks` what must hold afterwards. Run ``python -m bench.sweep``.
"""
