"""Gradient step of SAC without autograd."""
