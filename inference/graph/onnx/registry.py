"""Tables of handlers: one function an ONNX operation, which adds its counterpart to the graph."""

from __future__ import annotations

from collections.abc import Callable

from reflexarc.inference.graph.onnx.context import Context

Handler = Callable[[Context], None]


class Handlers(dict[str, Handler]):
    """ONNX operation to handler; calling it decorates one."""

    def __call__(self, *ops: str) -> Callable[[Handler], Handler]:
        """Register the decorated function for these operations."""

        def register(handler: Handler) -> Handler:
            self.update(dict.fromkeys(ops, handler))
            return handler

        return register
