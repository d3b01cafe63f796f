"""Tables of handlers: one function an operator, which adds its counterpart to the graph."""

from __future__ import annotations

from collections.abc import Callable

from reflexarc.inference.graph.tflite.context import Context

Handler = Callable[[Context], None]


class Handlers(dict[str, Handler]):
    """Operator to handler; calling it decorates one."""

    def __call__(self, *operators: str) -> Callable[[Handler], Handler]:
        """Register the decorated function for these operators."""

        def register(handler: Handler) -> Handler:
            self.update(dict.fromkeys(operators, handler))
            return handler

        return register
