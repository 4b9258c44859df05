"""Selection of the device and of the number format."""

import torch


def resolve_device(device: str) -> torch.device:
    """Return the named device; "auto" selects CUDA if it is available.

    Raises:
        ValueError: The device is not available; the message lists the available ones.
    """
    available = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    name = available[-1] if device == "auto" else device
    if name not in available:
        raise ValueError(f"--device {device}: not available here; choose from {', '.join(available)}, auto")
    return torch.device(name)


def available_precisions(device: torch.device) -> list[str]:
    """Return the number formats that the device supports; bfloat16 is slow on CPUs without instructions for it."""
    bfloat16 = (
        torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        if device.type == "cpu"
        else torch.cuda.is_bf16_supported()
    )
    return ["float32", "bfloat16"] if bfloat16 else ["float32"]


def resolve_precision(precision: str, device: torch.device, name: str = "precision") -> torch.dtype:
    """Return the named number format; "auto" selects bfloat16 if the device supports it, else float32.

    Raises:
        ValueError: The device does not support the format; the message starts with `name` and lists the supported ones.
    """
    available = available_precisions(device)
    chosen = available[-1] if precision == "auto" else precision
    if chosen not in available:
        raise ValueError(f"{name} {precision!r}: this {device.type} offers {', '.join(available)}; or choose auto")
    return getattr(torch, chosen)
