"""One TOML file tells the whole node: its schema, its reading and its checking.

`schema` says what every key may be, `load` reads a file into it and shows all problems at once, `place` fits
it to the cores of a machine. Nothing here imports numpy, asyncio or ZeroMQ.
"""
