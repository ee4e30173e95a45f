"""What reading them showed of the runs on which the detectors raised an alarm although the task was solved.

One reader's judgement, by these two words; a run that is not listed has not been read.
"true loop": the same step again and again without anything new, whatever became of the task. "fault": honest work.
"""

from __future__ import annotations

_FT = "tau2_official/ft_gpt-4.1-2025-04-14_sierra_tau2-full-sft_BzrYdMNm_{}_1trials#{}"

READINGS: dict[str, tuple[str, str]] = {
    _FT.format("airline_default_gpt-4.1", 4): ("true loop", "the same refusal five times, word for word"),
    _FT.format("airline_default_gpt-4.1", 18): (
        "fault",
        "asks for the status of nine different flights, each of which is available",
    ),
    _FT.format("telecom_default_gpt-4.1", 4): (
        "fault",
        "a record is read again after the customer changed things on the phone",
    ),
    "tau2_gemma/09#4": ("true loop", "announces a broader search and makes the same empty one, three times"),
    "tau2_gemma/26#4": ("true loop", "one error in five of the customer's calls, three of them identical"),
    "taubench/gpt-4o-airline#113": ("true loop", "the same booking error four times; the customer says so too"),
    "swe-agent/trajectories__demonstrations__ctf__crypto__eps": ("true loop", "the same wrong flag submitted four times"),
}
