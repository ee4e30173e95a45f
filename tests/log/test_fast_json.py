"""JSON without the package `json`: what is none is refused by the same error whether or not that is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

TORN = ['{"a', '{"a"', '{"a":', '{"a":1', "{1", "[1", '"a', '"\\x"', "[1 2]", "", "nul", '{"a":"\\ud8"}', "{,}"]


@pytest.mark.parametrize("module", ["fast_json", "codec"])
@pytest.mark.parametrize("text", TORN)
def test_what_is_no_json_is_a_value_error(module: str, text: str) -> None:
    """The interpreter's scanner takes its exception from `json`, and fails without one where that is not loaded."""
    call = "fast_json.loads(text)" if module == "fast_json" else "codec.decode(text.encode())"
    code = (
        f"import sys\nfrom ctxmgr.log import {module}\ntext = {text!r}\nassert 'json' not in sys.modules\n"
        f"try: {call}\nexcept ValueError: print('refused')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("refused\n", "")
