"""Decisions to commands: policies, limits, lifetimes and the e-stop; plain Python, time is a parameter."""
