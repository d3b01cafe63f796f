"""The network: four strided 1-D convolutions, a global average over time, one dense layer."""

import torch
from torch import nn

CHANNELS = (32, 48, 64, 64)
KERNELS = (7, 5, 5, 5)
STRIDE = 2


class Block(nn.Sequential):  # type: ignore[misc]
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(
            nn.Conv1d(inputs, outputs, kernel, STRIDE, kernel // 2, bias=False),
            nn.BatchNorm1d(outputs),
            nn.ReLU(),
        )

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight [out, in, kernel] and bias [out] of the convolution with the normalisation folded in."""
        conv, norm = self[0], self[1]
        gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        return conv.weight * gain[:, None, None], norm.bias - norm.running_mean * gain


class Network(nn.Module):  # type: ignore[misc]
    """[n, 6, time] -> logits [n, classes]."""

    def __init__(self, inputs: int, classes: int, dropout: float) -> None:
        super().__init__()
        widths = (inputs, *CHANNELS)
        self.blocks = nn.Sequential(*map(Block, widths[:-1], widths[1:], KERNELS))
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(widths[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits; the average over time makes them insensitive to the phase of a repetition."""
        logits: torch.Tensor = self.dense(self.dropout(self.blocks(x).mean(dim=2)))
        return logits
