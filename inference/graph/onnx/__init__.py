"""ONNX models: the file, its tensors, and the graph they become."""

from reflexarc.inference.graph.onnx.importer import load, read

__all__ = ["load", "read"]
