"""Stores of other systems, read where they lie."""
