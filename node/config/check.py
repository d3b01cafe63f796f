"""Checks across keys: references, orders and sums that no rule of a single key can see.

Each check first asks whether the keys it looks at are sound, so that one mistake is one line and not five.
"""

from reflexarc.node.config import check_channel
from reflexarc.node.config.endpoint import is_local
from reflexarc.node.config.problems import Problems, Section
from reflexarc.node.config.rules import nearest
from reflexarc.node.config.schema import Config, Pipeline, Stream, Worker

RESERVED_LABELS = ("otherwise", "undecided")
GATE = "gate"
LARGEST_ARRAY = 1 << 24  # numbers: 64 MiB of float32


def across(config: Config, problems: Problems) -> None:
    """Add every problem between the keys of a configuration."""
    _endpoints(config, problems)
    for worker in config.workers.values():
        _worker(config, worker, Section(problems, f"worker.{worker.name}"))
    for stream in config.streams.values():
        _stream(config, stream, Section(problems, f"stream.{stream.name}"))
    for pipeline in config.pipelines.values():
        _pipeline(config, pipeline, Section(problems, f"pipeline.{pipeline.name}"))
    for channel in config.channels.values():
        check_channel.channel(config, channel, Section(problems, f"channel.{channel.name}"))
    if not config.pipelines and problems.clean("pipeline"):
        problems.add("pipeline", "is missing: a node needs at least one [pipeline.NAME]")


def _endpoints(config: Config, problems: Problems) -> None:
    named = {"node.publish": config.node.publish}
    if config.gate.estop is not None:
        named["gate.estop.endpoint"] = config.gate.estop.endpoint
    named |= {f"stream.{stream.name}.endpoint": stream.endpoint for stream in config.streams.values()}
    bound: dict[str, str] = {}  # endpoint -> the key that binds it
    for path, endpoint in named.items():
        if not problems.clean(path):
            continue
        if not (config.node.insecure or is_local(endpoint)) and problems.clean("node.insecure"):
            problems.add(path, f"{endpoint} is not ipc or loopback (127.0.0.1), and node.insecure is false")
        if endpoint in bound:
            problems.add(path, f"{endpoint} is {bound[endpoint]} already")
        elif not path.startswith("stream."):
            bound[endpoint] = path


def _worker(config: Config, worker: Worker, at: Section) -> None:
    if worker.name == GATE:
        at.problems.add(f"worker.{GATE}", f"the name is taken: health/{GATE} is the gate's own topic")
    if at.clean("cores", "threads") and worker.cores and worker.threads > len(worker.cores):
        at.add("threads", f"{worker.threads} is above the {len(worker.cores)} of cores")
    gate = config.gate.priority
    if at.clean("priority") and at.problems.clean("gate.priority") and worker.priority.rank >= gate.rank:
        at.add("priority", f"{worker.priority} is not below gate.priority {gate}")


def _stream(config: Config, stream: Stream, at: Section) -> None:
    if at.clean("max_age_ms", "rate_hz", "frame") and stream.max_age_ms < stream.period_ms:
        at.add("max_age_ms", f"{stream.max_age_ms:g} is below the {stream.period_ms:g} ms of a message")
    if at.clean("shape", "frame") and stream.elements * stream.frame > LARGEST_ARRAY:
        at.add("frame", f"{stream.elements * stream.frame} numbers a message are above {LARGEST_ARRAY}")
    if not at.clean("endpoint", "topic"):
        return
    for other in config.streams.values():
        if other.name == stream.name:
            return
        if (other.endpoint, other.topic) == (stream.endpoint, stream.topic):
            at.add("topic", f"{stream.topic} at {stream.endpoint} is stream.{other.name} already")


def _pipeline(config: Config, pipeline: Pipeline, at: Section) -> None:
    worker, stream = pipeline.worker, pipeline.window.stream
    if at.clean("worker") and worker not in config.workers:
        at.add("worker", f"{worker} is not a worker{nearest(worker, config.workers)}")
    if at.clean("window.stream"):
        if stream in config.streams:
            _window(config.streams[stream], pipeline, at)
        else:
            at.add("window.stream", f"{stream} is not a stream{nearest(stream, config.streams)}")
    if at.clean("decide.labels"):
        for label in RESERVED_LABELS:
            if label in pipeline.decide.labels:
                at.add("decide.labels", f"{label} is a reserved word")
    if at.clean("scale") and 0 in pipeline.scale:
        at.add("scale", "0 would hide the sensor")


def _window(stream: Stream, pipeline: Pipeline, at: Section) -> None:
    window, outside = pipeline.window, Section(at.problems, f"stream.{stream.name}")
    if at.clean("window.length_s"):
        span_ms = 1000 * window.length_s
        if at.clean("window.fill_ms") and window.fill_ms > span_ms:
            at.add("window.fill_ms", f"{window.fill_ms:g} is above the {span_ms:g} ms of the window")
        if outside.clean("late_ms") and stream.late_ms > span_ms:
            outside.add("late_ms", f"{stream.late_ms:g} is above the {span_ms:g} ms of {at.path}.window")
    if not outside.clean("shape"):
        return
    if window.length * stream.elements > LARGEST_ARRAY:
        numbers = window.length * stream.elements
        at.add("window.length_s", f"{numbers} numbers a window are above {LARGEST_ARRAY}")
    last = stream.shape[-1] if stream.shape else 1
    for key, factors in (("scale", pipeline.scale), ("offset", pipeline.offset)):
        if at.clean(key) and len(factors) not in (1, last):
            at.add(key, f"a list of {len(factors)} is not 1 or the {last} of {outside.path}.shape")
