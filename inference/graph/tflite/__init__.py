"""TensorFlow Lite models: the file, its tensors, and the graph they become."""

from reflexarc.inference.graph.tflite.importer import load, read

__all__ = ["load", "read"]
