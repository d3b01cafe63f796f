"""One TOML file tells the whole node: its schema, its reading and its checking."""
