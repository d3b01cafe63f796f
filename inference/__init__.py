"""The engine: models in, numbers out; no sockets, no clocks."""
