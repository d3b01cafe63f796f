"""The processes that turn frames into decisions."""
