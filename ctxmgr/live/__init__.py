"""Watch a run while it happens: count its rounds at each call, and tell the agent when it goes in circles.

`rounds` counts with the standard library alone; only when that looks like a loop, `detector_answer` asks the real detectors.
"""
