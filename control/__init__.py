"""Decisions to commands: policies, limits, staleness and the e-stop; plain Python floats, time is a parameter."""
