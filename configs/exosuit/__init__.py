"""The demo: its model, its recording and the scripts that made both."""
