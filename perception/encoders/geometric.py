"""PyTorch Geometric's layers, imported without PyTorch's remark on how PyTorch Geometric compiles its utilities."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")  # a FutureWarning, seen, from PyTorch 2.15 on
    from torch_geometric.nn import MLP, Linear

__all__ = ["MLP", "Linear"]
