"""Find loops and stalls: observations in, findings out.

`DETECTORS` in `ctxmgr.detect.detectors` names the module of each pattern. Begin with `monitor`, which shows each observation
to the detectors of its agent, and `step`, in which `ObservedStep.same` says whether two calls are the same: by texts that
`text.fingerprints` blurs. `polling` says when the same call is patience, `text.vocabulary` what a call does. `replay` makes
observations of records. Pure: no store, and no clock but what is passed in. What goals and others use of the texts here loads
no detector. May import `ctxmgr.types`, `ctxmgr.text`, `ctxmgr.log` and below.
"""
