"""Kernels, one family a file, written once for every instruction set (build time only)."""
