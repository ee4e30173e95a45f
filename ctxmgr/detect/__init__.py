"""Find loops and stalls: observations in, findings out. One pattern a module, all named in `ctxmgr.detect.detectors`.

Pure: no store, and no clock but what is passed in. What goals and others use of the texts here loads no detector.
"""
