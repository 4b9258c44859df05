"""Layers of PyTorch Geometric, imported without PyTorch's deprecation warning about `torch.jit.script`."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")  # a FutureWarning from PyTorch 2.15 on
    from torch_geometric.nn import MLP, Linear, PointNetConv
    from torch_geometric.nn.aggr.utils import PoolingByMultiheadAttention, SetAttentionBlock

__all__ = ["MLP", "Linear", "PointNetConv", "PoolingByMultiheadAttention", "SetAttentionBlock"]
