"""The main process: it alone owns the control topics and goes on when everything else fails."""
