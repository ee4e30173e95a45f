"""The detectors, one pattern a module. `ctxmgr.detect.DETECTORS` names them all."""
