"""The table of encoders: what is measured, read and shown, of real runs and real encoders."""

import json
import shutil

import pytest

import assets
from agents.compare import main
from agents.config.train import LearnerConfig
from agents.report.encoders import HEADINGS, encoder_rows, encoder_table, has_own_encoder
from agents.report.outcome import read_outcome
from perception.registry import make_encoder
from tests.agents.one_line import one_line
from tests.agents.report.test_compare import finished_run

SCRATCH = LearnerConfig(n_steps=3, encoder_training="scratch", batch_size=32, net_arch=(32, 32))
ROW = "push-slot-1-pointcloud-buffer"


def finished(runs, name, rates, **settings):
    """Finished runs of some seeds, which say that they solved the task after a minute for each seed."""
    for seed, rate in enumerate(rates):
        finished_run(runs / f"{name}-seed{seed}", rate, **{"obs": "pointcloud", "learner": SCRATCH} | settings)
        log = "step,eval/success_rate,eval/seconds\n" + "".join(f"{n},{rate},{30 * (n + seed)}\n" for n in (1, 2))
        (runs / f"{name}-seed{seed}" / "progress.csv").write_text(log)


def table(text):
    """The second table of a report by its first column."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    begin = next(i for i, row in enumerate(rows) if row == list(HEADINGS))
    return {row[0]: dict(zip(HEADINGS, row, strict=True)) for row in rows[begin + 1 :]}


@pytest.mark.slow
def test_a_comparison_of_encoders_has_a_table_of_them(tmp_path, capsys):
    """All are trained from random weights; images come with the encoder that takes them."""
    runs, out = tmp_path / "runs", tmp_path / "out"
    scratch = "learner.encoder-training=scratch"
    finished(runs, ROW, (0.0, 0.0), learner=LearnerConfig(n_steps=3))  # frozen, which is not compared
    finished(runs, f"{ROW}-{scratch}", (1.0, 0.9))
    finished(runs, f"{ROW}-encoder=pointnet2-{scratch}", (0.5, 0.5), encoder="pointnet2")
    finished(runs, "push-slot-1-rgbd-buffer", (1.0, 1.0), obs="rgbd")
    words = ["--obs", "pointcloud", "rgbd", "--method", "buffer", "--encoder", "pointnet", "pointnet2", "rgbd_cnn"]
    words += ["--vary", "learner.encoder-training", "scratch"]
    main([*words, "--seeds", "2", "--runs", str(runs), "--out", str(out)])
    printed, report = capsys.readouterr().out, (out / "report.md").read_text()
    assert "running" not in printed
    shown = table(report)
    assert shown == table(printed) and len(shown) == 3
    pointnet, pointnet2, images = shown.values()
    assert [row["encoder"] for row in shown.values()] == ["pointnet", "pointnet2", "rgbd_cnn"]
    assert pointnet["times the first row"] == "1.0" and {row["encoder training"] for row in shown.values()} == {
        "scratch"
    }
    for row, shape in ((pointnet, (20, 4)), (pointnet2, (20, 4)), (images, (4, 48, 48))):
        size = sum(p.numel() for p in make_encoder(row["encoder"], in_shape=shape).parameters())
        assert row["parameters"] == str(size) and row["rank correlation of the prior"] == "-"
        assert float(row["gradient step [ms]"]) > 0 and float(row["times the first row"]) > 0
    assert pointnet["minutes until solved, median / worst"] == "1.2 / 1.5" and pointnet["seeds"] == "2"
    assert pointnet2["minutes until solved, median / worst"] == "- / -"
    assert images["success, interquartile mean [95 % interval]"] == "100.0 [100.0, 100.0]"
    data, page = json.loads((out / "encoders.json").read_text()), (out / "report.html").read_text()
    assert [row["encoder"] for row in data] == ["pointnet", "pointnet2", "rgbd_cnn"]
    assert data[0]["minutes"] == [1.0, 1.5] and data[1]["minutes"] == [None, None]
    assert set(json.loads((out / "results.json").read_text())) == set(shown)
    assert f"wrote {out}: curves.png, encoders.json, profiles.png" in printed
    assert 'id="encoders"' in page and all(heading in page for heading in HEADINGS)


def test_a_comparison_without_a_choice_of_encoders_has_no_such_table(tmp_path, capsys):
    finished_run(tmp_path / "runs" / "push-slot-1-state-buffer-seed0", 1.0)
    words = ["--obs", "state", "--method", "buffer", "--seeds", "1", "--runs", str(tmp_path / "runs")]
    main([*words, "--out", str(tmp_path / "out")])
    assert "gradient step" not in capsys.readouterr().out
    assert not (tmp_path / "out/encoders.json").exists()
    assert 'id="encoders"' not in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize("encoder, own", [(None, False), ("pointnet", False), ("mlp", True), ("elsewhere:Net", True)])
def test_the_default_encoder_by_its_name_is_none_of_its_own(encoder, own, tmp_path):
    finished(tmp_path, "some", (1.0,), encoder=encoder)
    assert has_own_encoder({"some": [read_outcome(tmp_path / "some-seed0")]}) == own


def rows_of(runs, **settings):
    finished(runs, "some", (1.0,), **settings)
    return encoder_rows({"some": [read_outcome(runs / "some-seed0")]})


def test_what_is_not_known_is_a_dash(tmp_path, capsys):
    """An encoder of another program, as in the report of what is there."""
    (row,) = rows_of(tmp_path, encoder="elsewhere:Thing")
    out = capsys.readouterr().out
    assert "the encoder of some is not measured: --encoder: unknown encoder 'elsewhere:Thing'" in out
    assert "--encoder or --imports module:Name, to import it" in out
    (cells,) = encoder_table([row]).rows
    assert cells[:8] == ["some", "elsewhere:Thing", "scratch", *"-----"]


@pytest.mark.parametrize("text", [None, "{", "[]", '{"rank_correlation": 0.9}', '{"rank_correlation": "x"}'])
def test_a_calibration_that_cannot_be_read_is_a_dash(text, tmp_path):
    path = tmp_path / "prior.pt"
    shutil.copy(assets.path("estimators/push-plane-state.pt"), path)
    if text is not None:
        path.with_suffix(".json").write_text(text)
    settings = {"obs": "state", "method": "potential", "learner": LearnerConfig(batch_size=32), "estimator": path}
    (row,) = rows_of(tmp_path / "runs", **settings)
    assert (row.rank_correlation, row.worst_error) == (None, None) and row.parameters == 0


def test_the_calibration_is_that_of_the_shipped_prior(tmp_path):
    (row,) = rows_of(tmp_path, learner=LearnerConfig(n_steps=3, batch_size=32))
    expected = json.loads(assets.path("estimators/push-plane-pointcloud.json").read_text())
    assert (row.rank_correlation, row.worst_error) == (expected["rank_correlation"], expected["worst_error"])
    assert row.training == "frozen"


def test_a_calibration_without_a_correlation_shows_the_error(tmp_path):
    path = tmp_path / "prior.pt"
    path.with_suffix(".json").write_text('{"rank_correlation": NaN, "worst_error": 0.5}')
    settings = {"obs": "state", "method": "potential", "learner": LearnerConfig(batch_size=32), "estimator": path}
    (row,) = rows_of(tmp_path / "runs", **settings)
    assert encoder_table([row]).rows[0][6:8] == ["-", "0.500"]


@pytest.mark.parametrize(
    "words, said",
    [
        ("--obs rgbd", "--obs rgbd: goes together with nothing that is compared: 'rgbd' has no goal to subtract"),
        ("--obs state --encoder dgcnn", "encoder 'dgcnn' takes inputs of shape (points, channels), not (8,)"),
        ("--obs pointcloud --encoder pointnet3", "unknown encoder 'pointnet3'; registered encoders"),
        ("--obs pointcloud --method buffer --encoder mlp", "the estimator was made with encoder 'pointnet', not 'mlp'"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_trained(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert said in one_line(main, words.split(), capsys)
    assert not list(tmp_path.iterdir())
