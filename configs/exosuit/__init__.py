"""The exosuit demo's model and recording: how they are made, and the files themselves."""
