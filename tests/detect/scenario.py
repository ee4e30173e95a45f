"""The project's own tests tell their stories as the conformance kit does."""

from ctxmgr.conformance.detector import START as START
from ctxmgr.conformance.detector import Scenario as Scenario
