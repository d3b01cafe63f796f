"""The models of a configuration, loaded once for a replay."""

from types import TracebackType
from typing import Self

from reflexarc.inference.session import Session
from reflexarc.node.config.schema import Config
from reflexarc.node.worker.pipeline import Pipeline


class Models:
    """Makes fresh pipelines of a configuration; each pipeline's model is loaded once."""

    def __init__(self, config: Config, threads: int | None = None) -> None:
        """`threads` replaces the number that each worker has."""
        self._config = config
        self._sessions = {
            name: Session.load(
                pipeline.model,
                threads=config.workers[pipeline.worker].threads if threads is None else threads,
            )
            for name, pipeline in config.pipelines.items()
        }

    def pipeline(self, name: str) -> Pipeline:
        """A fresh pipeline."""
        config = self._config.pipelines[name]
        stream = self._config.streams[config.window.stream]
        return Pipeline(config, stream, self._sessions[name], session=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for session in self._sessions.values():
            session.close()
