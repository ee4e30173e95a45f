"""The project's own tests tell their stories as the conformance kit does."""

from ctxmgr.conformance.scenario import START as START
from ctxmgr.conformance.scenario import Scenario as Scenario
