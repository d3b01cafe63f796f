"""Benchmarks, run by reflexarc bench."""
