"""The shell: processes, sockets, clocks, files and the command line."""
