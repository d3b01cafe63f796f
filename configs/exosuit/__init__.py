"""The exosuit demo's model and recording: how they are made, and the files themselves."""

STATED_ACCURACY = 0.956
"""What the decisions on `exosuit.mcap` must reach: see README.md beside this file."""
