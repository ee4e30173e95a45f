"""Work beside this process: a generator that runs in a second one (`worker_process`), and the records it reads there."""
