"""Receipts, trees and counter-seals of runx, judged by its own rules."""
