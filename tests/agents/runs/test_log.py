"""Curves: `progress.csv` and TensorBoard's events say the same, each step once, also after an interruption."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.runs.log import RunLog, RunLogger, read_progress


def log(directory, steps, resumed_at=0):
    output = RunLog(directory, resumed_at)
    for step in steps:
        output.write({"loss": step / 8, "words": "none"}, {}, step)
    output.close()


def scalars(directory, tag="loss"):
    """What TensorBoard shows."""
    return [(event.step, event.value) for event in EventAccumulator(str(directory)).Reload().Scalars(tag)]


def test_a_resumed_log_continues_after_its_checkpoint(tmp_path):
    log(tmp_path, [10, 20, 30, 40])
    path = next(tmp_path.glob("events.out.tfevents.*"))
    path.rename(tmp_path / "events.out.tfevents.1.first")  # as if it had been seconds ago
    log(tmp_path, [30, 50], resumed_at=20)
    expected = [(step, step / 8) for step in (10, 20, 30, 50)]
    assert scalars(tmp_path) == expected
    assert [(row["step"], row["loss"]) for row in read_progress(tmp_path / "progress.csv")] == expected


def test_numbers_of_one_step_share_a_row_and_the_first_stays(tmp_path):
    output = RunLog(tmp_path)
    output.write({"a": 1, "b": 2.5}, {"b": ("tensorboard",)}, 7)
    output.write({"a": 9, "c": 3}, {}, 7)
    output.close()
    assert read_progress(tmp_path / "progress.csv") == [{"step": 7, "a": 1, "b": 2.5, "c": 3}]
    assert scalars(tmp_path, "a") == [(7, 1.0)] and scalars(tmp_path, "c") == [(7, 3.0)]
    assert EventAccumulator(str(tmp_path)).Reload().Tags()["scalars"] == ["a", "c"]


@pytest.mark.parametrize(
    "text", ["step,a\n1,x\n", "step,a\n2,1\n1,1\n", 'step\n"1', "a,b\n1,2\n", "step,a\n1,2,3\n", "\xff"]
)
def test_a_damaged_progress_file_is_named(tmp_path, text):
    path = tmp_path / "progress.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"progress\.csv is damaged .*; move it away"):
        read_progress(path)


def test_means_that_are_not_written_yet_survive_a_checkpoint(tmp_path):
    loggers = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        loggers.append(RunLogger(tmp_path / name))
    first, second = loggers
    for value in (1.0, 2.0):
        first.record_mean("loss", value)
    second.set_state(first.get_state())
    for logger, name in zip(loggers, "ab", strict=True):
        logger.record_mean("loss", 6.0)
        logger.dump(5)
        logger.close()
        assert read_progress(tmp_path / name / "progress.csv") == [{"step": 5, "loss": 3.0}]


def test_many_clipped_targets_are_said_once_in_a_run(tmp_path, capsys):
    """Also where it is resumed."""

    def logged(shares, first, bounds=(-1.0, 1.99)):
        logger = RunLogger(tmp_path, first, bounds)
        for step, share in enumerate(shares, first + 1):
            for value in (share - 0.02, share + 0.02):  # the mean counts
                logger.record_mean("train/clipped_targets", value)
            logger.dump(step)
        logger.close()
        return [line for line in capsys.readouterr().out.splitlines() if "clipped" in line]

    assert logged([0.02, 0.045], 0) == []
    (line,) = logged([0.04, 0.08, 0.5], 2)
    assert line.startswith("8% of the critic's targets lie outside [-1, 1.99]") and "--learner.target-bounds" in line
    assert logged([0.5], 5) == []
    assert logged([0.5], 0, None) == []
