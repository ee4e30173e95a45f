"""Find loops and stalls: observations in, findings out. One pattern a module, all named in `ctxmgr.detect.detectors`.

Begin with `monitor`, which shows each observation to the detectors of its agent, and `step`, which says what two calls have
in common; `replay` makes observations of records. Pure: no store, and no clock but what is passed in. What goals and others
use of the texts here loads no detector. May import `ctxmgr.types`, `ctxmgr.text`, `ctxmgr.log` and below.
"""
