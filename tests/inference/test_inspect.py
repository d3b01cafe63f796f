"""The command that shows a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx_models import Net, quantized

from reflexarc.node.cli import main

MODEL = Path(__file__).parents[2] / "configs/exosuit/exosuit.onnx"


def test_json_tells_operations_work_and_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = Net([1, 6, 40])
    net.conv(6, 8, [5], pads=[2, 2])
    net.add("Relu")
    net.add("Flatten")
    net.gemm(320, 3)
    path = tmp_path / "net.onnx"
    path.write_bytes(quantized(net).SerializeToString())
    assert main(["inspect", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["inputs"] == [
        {"name": "input", "dtype": "f32", "shape": [1, 6, 40], "scale": None, "zero_point": None}
    ]
    conv, dense = (o for o in report["operations"] if o["op"] in ("conv", "dense"))
    assert (conv["macs"], conv["weights"]) == (40 * 8 * 5 * 6, 8 * 5 * 6 + 8 * 4)
    assert (dense["macs"], dense["weights"]) == (320 * 3, 320 * 3 + 3 * 4)
    assert conv["weights_type"] == "i8 8x1x5x6 per channel"
    assert conv["dtype"] == "i8"
    assert conv["scale"] > 0
    assert report["macs"] == conv["macs"] + dense["macs"]
    assert report["memory"]["weights"] >= report["weights"]
    assert report["memory"]["arena"] >= 6 * 40 * 4


def test_the_table_has_a_line_an_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(MODEL)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("conv ") for line in lines) == 4
    assert sum(line.startswith("memory (") for line in lines) == 1


def test_passes_shows_the_graph_as_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(MODEL), "--passes"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("as read: ")
    assert "\ninteger: " in out
    assert "signed: no change" in out


def test_a_model_that_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(MODEL.read_bytes()[:-100])
    assert main(["inspect", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"reflexarc: {path}: ")
    assert error.count("\n") == 1
