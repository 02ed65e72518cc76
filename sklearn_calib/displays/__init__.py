"""Displays draw results; they compute nothing. They need matplotlib (the ``plot`` extra)."""

from ._reliability import ReliabilityDisplay as ReliabilityDisplay

__all__ = ["ReliabilityDisplay"]
