"""Formats of other systems, verified by their own rules."""
