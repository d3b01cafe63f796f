"""Frames, windows and the health of sensor streams; no sockets, no clocks."""
