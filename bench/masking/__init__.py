"""How well and how fast secrets are masked: recall, false maskings, growth and cost. Run ``python -m bench.masking``."""
