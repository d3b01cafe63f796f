"""Runs a recording through the pipelines of a configuration: the log's clock, no sockets, as fast as it goes.

Where the log holds trace/PIPELINE, the replay follows it: the same frames in the order in which the worker
took them give the decisions of that day bit for bit, in every interval that the log holds whole. Without a
trace, frames are taken in the order and at the time of the log.
"""
