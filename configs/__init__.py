"""Configurations that run as they stand."""
