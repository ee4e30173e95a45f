"""The file that clients run as a hook, by `ctxmgr.live.installation.hook_command`, with the event on stdin.

Python compiles this file at every start, so the code is in `ctxmgr.live.event_answer`, which is cached in compiled form.
"""

if __name__ == "__main__":
    import sys

    sys.path.insert(0, __file__.rpartition("/live/")[0].rpartition("/")[0])  # the file is run by its path, without `site`
    try:
        if sys.argv[1] == "--tell":
            from ctxmgr.live.detector_answer import run
        elif sys.argv[1] == "--watch":
            from ctxmgr.live.watcher import run
        else:
            from ctxmgr.live.event_answer import run
        run(sys.argv[-1])
    except BaseException:  # no error of ours may stop the client
        sys.exit(0)
