"""SAC's gradient step without autograd."""
