"""The figures that `local.py` measures, one module each, and what they are measured with."""
