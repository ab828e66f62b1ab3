"""The version of this implementation, as receipts and verdicts name it."""

from typing import Final

VERSION: Final = "0.1.0"
