"""Judgement: evidence, trust, memory and time go in, a verdict comes out; nothing here reads a disk, a clock or a network."""
