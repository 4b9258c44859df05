"""Acting in the environment: beside the learner, reproducibly, with its time measured."""
