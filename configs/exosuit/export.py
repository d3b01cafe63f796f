"""A trained network as int8 QDQ ONNX: batch norm folded, static shapes, standard operators only."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

from reflexarc.configs.exosuit.network import KERNELS, STRIDE, Network

OPSET = 13
IR_VERSION = 8


class _Windows(CalibrationDataReader):  # type: ignore[misc]
    """Feeds windows [n, 6, time] to the calibration one by one."""

    def __init__(self, name: str, windows: NDArray[np.float32]) -> None:
        self._feeds: Iterator[dict[str, NDArray[np.float32]]] = iter([{name: w[None]} for w in windows])

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._feeds, None)


def export_int8(network: Network, windows: NDArray[np.float32], input_scale: float, path: Path) -> None:
    """Write the network quantized: ranges from the windows [n, 6, time], the input's step as given."""
    with tempfile.TemporaryDirectory() as folder:
        floating = Path(folder) / "float.onnx"
        onnx.save(float_model(network, windows.shape[1:]), floating)
        step = {"scale": np.array(input_scale, np.float32), "zero_point": np.array(0, np.int8)}
        quantize_static(
            floating,
            path,
            _Windows("window", windows),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            calibrate_method=CalibrationMethod.MinMax,
            op_types_to_quantize=["Conv", "Relu", "GlobalAveragePool", "Flatten", "Gemm"],
            extra_options={"WeightSymmetric": True, "TensorQuantOverrides": {"window": [step]}},
        )
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)


def float_model(network: Network, shape: tuple[int, ...]) -> onnx.ModelProto:
    """Build the float ONNX graph of the network for one window of the given shape [channels, time]."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, NDArray[np.float32]] = {}
    x = "window"

    def add(op: str, name: str, *parameters: str, **attributes: object) -> None:
        nonlocal x
        nodes.append(helper.make_node(op, [x, *parameters], [name], name=name, **attributes))
        x = name

    for i, (block, kernel) in enumerate(zip(network.blocks, KERNELS, strict=True), 1):
        weight, bias = block.folded()
        weights |= {f"conv{i}.weight": weight.detach().numpy(), f"conv{i}.bias": bias.detach().numpy()}
        pads = [kernel // 2] * 2
        add(
            "Conv",
            f"conv{i}",
            f"conv{i}.weight",
            f"conv{i}.bias",
            kernel_shape=[kernel],
            strides=[STRIDE],
            pads=pads,
        )
        add("Relu", f"relu{i}")
    add("GlobalAveragePool", "mean")
    add("Flatten", "features", axis=1)
    dense = network.dense
    weights |= {"dense.weight": dense.weight.detach().numpy(), "dense.bias": dense.bias.detach().numpy()}
    add("Gemm", "logits", "dense.weight", "dense.bias", transB=1)
    add("Softmax", "scores", axis=1)
    graph = helper.make_graph(
        nodes,
        "exosuit",
        [helper.make_tensor_value_info("window", TensorProto.FLOAT, [1, *shape])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, dense.out_features])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="reflexarc"
    )
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return model
