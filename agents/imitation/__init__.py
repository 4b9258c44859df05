"""Imitation learning baselines: rewards that are learned or computed from demonstrations, and behavioural cloning.

Their definitions are those of Kaixhin/imitation-learning (Arulkumaran & Lillrank 2023, "A pragmatic look at deep
imitation learning"). Observations enter as the features of a fixed encoder, so that nothing depends on the order of a
cloud's points: the pre-trained PointNet for clouds, scaled numbers for states. Success ends an episode; so that the
sign of a reward does not decide whether finishing pays, a terminal transition is followed by an absorbing state with an
indicator of its own (Kostrikov et al. 2019, "Discriminator-actor-critic"). Its value is that of its reward at all later
steps.
"""
