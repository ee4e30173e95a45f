"""The file that clients run as a hook, as `ctxmgr.live.installation.hook_command` says, with the event on stdin.

It is read anew at every start, so the code that is kept compiled lies elsewhere (`ctxmgr.live.event_answer`).
"""

if __name__ == "__main__":
    import sys

    sys.path.insert(0, __file__.rpartition("/live/")[0].rpartition("/")[0])  # it is run by its path, without `site`
    try:
        if sys.argv[1] == "--tell":
            from ctxmgr.live.detector_answer import run
        elif sys.argv[1] == "--watch":
            from ctxmgr.live.watcher import run
        else:
            from ctxmgr.live.event_answer import run
        run(sys.argv[-1])
    except BaseException:  # whatever is wrong with us, the client's run goes on
        sys.exit(0)
