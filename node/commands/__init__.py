"""One module a subcommand of the command line."""
