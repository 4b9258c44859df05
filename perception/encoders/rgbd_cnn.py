"""Convolutional encoder of images with colours and depth, as a control of the point clouds."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from perception.encoders import POSITION_SCALE, check_shape
from perception.registry import register_encoder

SMALLEST = 15  # side of an image of which three convolutions leave a pixel


@register_encoder("rgbd_cnn")
class RGBDCNN(nn.Module):
    """Encode an image by convolutions of stride 2, f = LayerNorm(W · CNN(colours − ½, 10 (depth − its mean)) + b).

    Few and narrow layers with LayerNorm after a linear layer, as for actor-critic methods on images (Yarats et al.,
    Improving sample efficiency in model-free RL from images, AAAI 2021).

    Args:
        in_shape: ``(4, height, width)``, sides of at least 15 pixels: red, green, blue in [0, 1] and depth [m].
        out_features: Number of features.
        channels: Channels of the convolutions, 3×3 each.
    """

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int = 64, channels: Sequence[int] = (16, 32, 32)
    ) -> None:
        super().__init__()
        fits = len(in_shape) == 3 and in_shape[0] == 4 and min(in_shape[1:]) >= SMALLEST
        check_shape("rgbd_cnn", in_shape, f"(4, height, width), at least {SMALLEST} pixels high and wide", fits)
        self.out_features = out_features
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise([4, *channels]):
            layers += [nn.Conv2d(inputs, outputs, kernel_size=3, stride=2), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        with torch.no_grad():
            _, size = self.convolutions(torch.zeros(1, *in_shape)).shape
        # A gradient step then takes 0.7 of the time. The overload is missing in the types of torch.
        self.convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.project = nn.Sequential(nn.Linear(size, out_features), nn.LayerNorm(out_features))

    def forward(self, observation: Float[Tensor, "batch 4 height width"]) -> Float[Tensor, "batch out_features"]:
        """Return the features of images."""
        depth = observation[:, 3:]
        relative = depth - depth.mean(dim=(2, 3), keepdim=True)
        return self.project(self.convolutions(torch.cat([observation[:, :3] - 0.5, POSITION_SCALE * relative], dim=1)))
