"""What is computed on, and in which number format: what is named, if it is here."""

import torch


def resolve_device(device: str) -> torch.device:
    """Return the named device; "auto" is CUDA where there is one.

    Raises:
        ValueError: There is no such device; lists those that there are.
    """
    available = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    name = available[-1] if device == "auto" else device
    if name not in available:
        raise ValueError(f"--device {device}: not available here; choose from {', '.join(available)}, auto")
    return torch.device(name)


def available_precisions(device: torch.device) -> list[str]:
    """Formats in which the device multiplies; a CPU without instructions for bfloat16 is slower in it."""
    bfloat16 = (
        torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        if device.type == "cpu"
        else torch.cuda.is_bf16_supported()
    )
    return ["float32", "bfloat16"] if bfloat16 else ["float32"]


def resolve_precision(precision: str, device: torch.device, name: str = "precision") -> torch.dtype:
    """Return the named format; "auto" is bfloat16 where the device multiplies in it, else float32.

    Raises:
        ValueError: The device has no such format; lists those that it has, after `name`.
    """
    available = available_precisions(device)
    chosen = available[-1] if precision == "auto" else precision
    if chosen not in available:
        raise ValueError(f"{name} {precision!r}: this {device.type} offers {', '.join(available)}; or choose auto")
    return getattr(torch, chosen)
