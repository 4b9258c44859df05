"""The goal-conditioned value Ṽ_g: how it is learned, fitted and measured."""
