"""Lifelong learning: one method learns a stream of tasks."""

from batchensemble.lab.studies.lifelong.study import LIFELONG, Settings

__all__ = ["LIFELONG", "Settings"]
