"""A configuration is read, or all that is wrong with it is shown: key, value, limit, nearest key."""

import math
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_config import TEXT

from reflexarc.node.config.load import build, load, parse
from reflexarc.node.config.priority import Priority
from reflexarc.node.config.problems import ConfigError
from reflexarc.node.config.schema import FromLabels

SHIPPED = Path(__file__).parents[2] / "configs" / "exosuit.toml"


def problems(*changes: tuple[str, str], text: str = TEXT) -> list[str]:
    """What is wrong with the shipped file after some changes of its text."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    with pytest.raises(ConfigError) as caught:
        parse(text, Path("/base"))
    return caught.value.problems


def test_a_sound_file() -> None:
    config = parse(TEXT, Path("/base"))
    pipeline, channel = config.pipelines["gait"], config.channels["knee"]
    assert (pipeline.window.length, pipeline.window.hop) == (200, 25)
    assert pipeline.model == Path("/base/models/gait.onnx")
    assert channel.max_rate_hz == 1000
    assert config.gate.priority == Priority("fifo", 50)
    assert channel.values["torque"].source == FromLabels({"WALK": 6, "STAIR": 8}, 0)
    assert config.pipelines_of("main") == [pipeline]
    assert [stream.name for stream in config.streams_of("main")] == ["imu"]
    assert parse(config.text, config.base) == config


def test_every_shipped_configuration_parses() -> None:
    paths = list(SHIPPED.parent.glob("*.toml"))
    assert SHIPPED in paths
    for path in paths:
        assert load(path).base == SHIPPED.parent


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("rate_hz = 50\nmax_age", "rate_hz = -3\nmax_age", "stream.imu.rate_hz: -3 is not above 0"),
        ("threads = 1", "threads = true", "worker.main.threads: true is not an integer"),
        ("threads = 1", "threads = 1.5", "worker.main.threads: 1.5 is not an integer"),
        ("threads = 1", "threads = 300", "worker.main.threads: 300 is above 256"),
        ("threads = 1", "treads = 1", "worker.main.treads: is not a known key (did you mean threads?)"),
        ("hop_s = 0.5", "hop_s = nan", "pipeline.gait.window.hop_s: nan is not finite"),
        ("hop_s = 0.5", "hop_s = inf", "pipeline.gait.window.hop_s: inf is not finite"),
        ("max = 8,", "max = -1,", "channel.knee.values.torque.max: -1 is below min 0"),
        ("safe = 0,", "safe = 9,", "channel.knee.values.torque.safe: 9 is above max 8"),
        ("safe = 0,", "safe = -1,", "channel.knee.values.torque.safe: -1 is below min 0"),
        ("WALK = 6", "WALK = 8.5", "channel.knee.values.torque.from.WALK: 8.5 is above max 8"),
        ("slew = 4,", "", "channel.knee.values.torque.slew: is missing"),
        ("slew = 4,", "slew = 0,", "channel.knee.values.torque.slew: 0 is not above 0"),
        (
            "WALK = 6",
            "WALC = 6",
            "channel.knee.values.torque.from.WALC: is not a label of pipeline.gait (did you mean WALK?)",
        ),
        (
            ", otherwise = 0 }",
            " }",
            "channel.knee.values.torque.from.otherwise: is missing",
        ),
        (
            'worker = "main"',
            'worker = "mian"',
            "pipeline.gait.worker: mian is not a worker (did you mean main?)",
        ),
        (
            'stream = "imu"',
            'stream = "umi"',
            "pipeline.gait.window.stream: umi is not a stream (known: imu)",
        ),
        (
            'pipeline = "gait"',
            'pipeline = "gate"',
            "channel.knee.pipeline: gate is not a pipeline (did you mean gait?)",
        ),
        (
            "hop_s = 0.5",
            "hop_s = 0.501",
            "pipeline.gait.window.hop_s: 0.501 s at 50 Hz is 25.05 samples, not a whole number (near",
        ),
        (
            "max_age_ms = 700",
            "max_age_ms = 539",
            "channel.knee.max_age_ms: 539 is below 540, the 500 of pipeline.gait.window.hop_s"
            " + deadline_ms 20 + 20 of jitter",
        ),
        ("ttl_ms = 100", "ttl_ms = 19", "channel.knee.ttl_ms: 19 is below the 20 ms between commands"),
        (
            'priority = "fifo:40"',
            'priority = "fifo:50"',
            "worker.main.priority: fifo:50 is not below gate.priority fifo:50",
        ),
        ('priority = "fifo:40"', 'priority = "fifo:100"', "worker.main.priority: fifo:100 is not in 1 to 99"),
        ('priority = "fifo:40"', 'priority = "high"', "worker.main.priority: 'high' is not"),
        ("127.0.0.1:5555", "10.0.0.2:5555", "stream.imu.endpoint: tcp://10.0.0.2:5555 is not ipc or loop"),
        ("127.0.0.1:5555", "localhost:55", "stream.imu.endpoint: tcp://localhost:55 is not ipc or loopback"),
        ("tcp://127.0.0.1:5556", "udp://x", "node.publish: 'udp://x' is not tcp://ADDRESS:PORT or ipc:///"),
        ("tcp://127.0.0.1:5556", "tcp://127.0.0.1:0", "node.publish: port 0 is not in 1 to 65535"),
        ("tcp://127.0.0.1:5556", "ipc://" + "/x" * 60, "node.publish: an ipc path of 120 bytes is above 107"),
        ("127.0.0.1:5555", "127.0.0.1:5556", "stream.imu.endpoint: tcp://127.0.0.1:5556 is node.publish"),
        (
            "127.0.0.1:5557",
            "127.0.0.1:5556",
            "gate.estop.endpoint: tcp://127.0.0.1:5556 is node.publish already",
        ),
        ('name = "leg"', 'name = "A leg"', "node.name: 'A leg' is not a name like upper_arm"),
        ("[worker.main]", "[worker.Main]", "worker.Main: is not a name like upper_arm"),
        ("[gate]", "[gatte]", "gatte: is not a known key (did you mean gate?)"),
        ('"WALK", "STAIR"', '"WALK", "WALK"', "pipeline.gait.decide.labels: 'WALK' stands there more than"),
        ('"SIT"', '"undecided"', "pipeline.gait.decide.labels: undecided is a reserved word"),
        ('kind = "classify"', 'kind = "clasify"', "pipeline.gait.decide.kind: 'clasify' is not one of"),
        ('stale = "ramp"', 'stale = "rump"', "channel.knee.stale: 'rump' is not one of"),
        ("deadline_ms = 20", "deadline_ms = 20\nscale = [1, 2]", "pipeline.gait.scale: a list of 2 is not"),
        ("deadline_ms = 20", "deadline_ms = 20\nscale = 0", "pipeline.gait.scale: 0 would hide the sensor"),
        ("threads = 1", "threads = 3\ncores = [0, 1]", "worker.main.threads: 3 is above the 2 of cores"),
        ("threads = 1", "cores = [0, 0]", "worker.main.cores: 0 stands there more than once"),
        ("shape = [6]", "shape = [6, 0, -1]", "stream.imu.shape[1]: 0 is below 1"),
        ("shape = [6]", "shape = [65536, 65536]", "stream.imu.frame: 4294967296 numbers a message are above"),
        ("max_age_ms = 200", "max_age_ms = 5", "stream.imu.max_age_ms: 5 is below the 20 ms of a message"),
        ("length_s = 4.0", "length_s = 86400", "numbers a window are above 16777216"),
        ('from = { WALK', "from = [ 1 ], x = { WALK", 'channel.knee.values.torque.from: [1] is neither'),
        ("[channel.knee.values]\n", "[channel.knee.values]\nx = 3\n", "values.x: 3 is not a table"),
    ],
)  # fmt: skip
def test_each_mistake_is_named(old: str, new: str, problem: str) -> None:
    assert any(problem in line for line in problems((old, new)))


def test_all_mistakes_are_shown_at_once_and_each_once() -> None:
    found = problems(
        ("rate_hz = 50\nmax_age_ms = 200", "rate_hz = -3\nmax_age_ms = true"),
        ("WALK = 6", "WALC = 9"),
        ('worker = "main"', 'worker = "mian"'),
        ("memory_mb = 80", ""),
    )
    assert sorted(line.split(":")[0] for line in found) == [
        "channel.knee.values.torque.from.WALC",
        "channel.knee.values.torque.from.WALC",  # above the maximum, and no label
        "pipeline.gait.worker",
        "stream.imu.max_age_ms",
        "stream.imu.rate_hz",
        "worker.main.memory_mb",
    ]


def test_a_missing_table_is_one_line() -> None:
    without = TEXT[: TEXT.index("[node]")] + TEXT[TEXT.index("[gate]") :]
    assert problems(text=without) == ["node: is missing"]
    assert problems(text='[node]\nname = "x"\npublish = "tcp://127.0.0.1:1"') == [
        "pipeline: is missing: a node needs at least one [pipeline.NAME]"
    ]


def test_insecure_permits_other_machines() -> None:
    text = TEXT.replace("127.0.0.1:5555", "10.0.0.2:5555").replace("[node]", "[node]\ninsecure = true")
    assert parse(text, Path("/")).node.insecure


def test_one_factor_for_all_or_one_for_each() -> None:
    text = TEXT.replace("deadline_ms = 20", "deadline_ms = 20\nscale = 0.5\noffset = [1, 2, 3, 4, 5, 6]")
    config = parse(text, Path("/"))
    assert config.pipelines["gait"].scale == (0.5,)
    assert config.pipelines["gait"].offset == (1, 2, 3, 4, 5, 6)


def test_a_decision_on_a_label_has_no_values_to_follow() -> None:
    text = TEXT[: TEXT.index("from = {")] + 'from = "value.angle", scale = 2 }'
    with pytest.raises(ConfigError) as caught:
        parse(text, Path("/"))
    (problem,) = caught.value.problems
    assert problem.startswith("channel.knee.values.torque.from: value.angle: pipeline.gait decides a label")


def test_the_largest_message_holds_every_number_at_its_longest() -> None:
    msgpack = pytest.importorskip("msgpack")
    text = TEXT.replace("shape = [6]", "shape = [3, 6]\nframe = 7")
    stream = parse(text.replace("max_age_ms = 200", "max_age_ms = 400"), Path("/")).streams["imu"]
    data = [[[math.pi] * 6] * 3] * 7
    payload = msgpack.packb({"seq": 2**63, "t": 2**63, "data": data, "x" * 100: 1})
    assert len(payload) <= stream.max_bytes < 2 * len(payload)


@pytest.mark.parametrize("text", ["[", "a = 1\na = 2", "x = " + "[" * 5000, "\x00", "x = 99999-01-01", "= 3"])
def test_no_toml(text: str) -> None:
    assert len(problems(text=text)) == 1


def test_unreadable_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(ConfigError, match="byte 2 is not UTF-8"):
        load(tmp_path / "latin.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (2 << 20))
    with pytest.raises(ConfigError, match="above 1048576 bytes"):
        load(tmp_path / "large.toml")


def test_loading_imports_nothing_large_and_is_quick() -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom reflexarc.node.config.load import load\n"
        f"t = time.perf_counter(); load(Path({str(SHIPPED)!r})); took = time.perf_counter() - t\n"
        "print(took, *({'numpy', 'asyncio', 'zmq', 'difflib'} & set(sys.modules)))"
    )
    took, *modules = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert modules == []
    assert float(took) < 0.1


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.binary(max_size=3)
)
KNOWN = """node gate worker stream pipeline channel values from name publish estop endpoint window decide
    labels min max safe slew model otherwise main imu gait torque knee rate_hz shape scale""".split()  # noqa: SIM905
KEYS = st.sampled_from(KNOWN) | st.text(max_size=8)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=30,
)


@given(st.dictionaries(KEYS, ANYTHING, max_size=8))
@settings(deadline=None)
def test_nothing_but_a_config_error_comes_of_anything(data: dict[str, Any]) -> None:
    with suppress(ConfigError):
        build(data, "", Path("/"))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_nothing_but_a_config_error_comes_of_one_change(data: st.DataObject) -> None:
    tree = tomllib.loads(TEXT)
    table = tree
    while True:
        key = data.draw(st.sampled_from(sorted(table)))
        if not isinstance(table[key], dict) or data.draw(st.integers(0, 4)) == 0:
            break
        table = table[key]
    if data.draw(st.booleans()):
        table[key] = data.draw(ANYTHING)
    else:
        table[data.draw(KEYS)] = table.pop(key)
    with suppress(ConfigError):
        build(tree, TEXT, Path("/"))


def test_check_takes_no_time_for_a_hostile_list() -> None:
    start = time.perf_counter()
    labels = [f"L{i}" for i in range(60_000)]
    problems(('["WALK", "STAIR", "SIT"]', str(labels).replace("'", '"')))
    assert time.perf_counter() - start < 2


def test_a_worker_does_not_take_the_gates_topic() -> None:
    changes = ("[worker.main]", "[worker.gate]"), ('worker = "main"', 'worker = "gate"')
    assert problems(*changes) == ["worker.gate: the name is taken: health/gate is the gate's own topic"]
