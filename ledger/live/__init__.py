"""Other systems at work, recorded as it happens."""
