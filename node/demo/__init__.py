"""The demo: a node as a user starts it, a wearer that plays the recording, a screen, the account."""
