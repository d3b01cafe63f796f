"""Imported models: the graph, its importers and its passes."""
