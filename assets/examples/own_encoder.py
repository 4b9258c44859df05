"""Train on point clouds with an encoder of your own."""

import torch

from agents.train import main
from perception import register_encoder


@register_encoder("deep-set")
class DeepSet(torch.nn.Sequential):
    out_features = 64

    def __init__(self, in_shape):
        super().__init__(torch.nn.Linear(in_shape[-1], 64), torch.nn.ReLU())

    def forward(self, cloud):
        return super().forward(10 * cloud).mean(dim=1)  # (batch, points, 4) [m] → (batch, 64)


if __name__ == "__main__":
    main(["--obs", "pointcloud", "--encoder", "deep-set", "--learner.encoder-training", "scratch", "--steps", "2000"])
