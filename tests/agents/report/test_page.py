"""The report as one HTML file, opened in headless Chromium."""

import base64

import pytest

from agents.compare import main
from agents.config.train import EvaluationConfig
from agents.train import train
from tests.agents.report.test_compare import finished_run


@pytest.mark.slow
def test_a_browser_shows_numbers_pictures_and_a_video(browser, configured, tmp_path):
    """One real training with a potential, and results that are written here."""
    trained = configured(
        tmp_path / "runs" / "trained-seed0", method="potential", steps=60, evaluation=EvaluationConfig(30, 1, 2)
    )
    train(trained)
    for name, rates in {"low": (0.1, 0.3), "high": (0.9, 1.0)}.items():
        for seed, rate in enumerate(rates):
            finished_run(tmp_path / "runs" / f"{name}-seed{seed}", rate)
    main(["--report-only", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--reference", "buffer"])
    path = tmp_path / "out" / "report.html"
    assert path.stat().st_size < 10e6
    errors = []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or errors.append(request.url))
    page.goto(path.as_uri())

    def column(number):
        return page.locator(f"#results tbody td:nth-child({number})").all_inner_texts()

    headings = page.locator("#results th").all_inner_texts()
    place = {name: headings.index(name) + 1 for name in ("runs", "interquartile mean [95 % interval]", "paper [%]")}
    means = dict(zip(column(1), column(place["interquartile mean [95 % interval]"]), strict=True))
    assert means["low"].startswith("20.0 [10.0, 30.0") and means["high"].startswith("95.0 [90.0, 100.0")
    assert dict(zip(column(1), column(place["paper [%]"]), strict=True)) == {"low": "30", "high": "30", "trained": "88"}
    heading = page.locator("#results th").nth(place["interquartile mean [95 % interval]"] - 1)
    order = sorted(means, key=lambda name: float(means[name].split()[0]))
    for expected in (order, order[::-1]):
        heading.click()
        assert column(1) == expected
    shown = page.eval_on_selector_all("img", "all => all.map(one => one.naturalWidth)")
    assert len(shown) == 4 and min(shown) > 300  # three figures, a map of Φ
    (video,) = page.query_selector_all("video")
    page.wait_for_function("document.querySelector('video').readyState >= 2", timeout=20_000)
    assert video.evaluate("video => video.duration") > 1
    page.locator("summary", has_text="trained").click()
    assert '"learner.batch_size": 32' in page.locator("details[open]").inner_text()
    assert not errors


def test_the_video_is_that_of_a_run_with_the_median_rate(tmp_path):
    """Of the runs whose rate is the median one that has a video is taken, so that shipped results need few videos."""
    for seed, rate in enumerate((0.5, 1.0, 1.0, 1.0)):
        finished_run(tmp_path / "runs" / f"some-seed{seed}", rate)
    for seed in (0, 2):
        (tmp_path / "runs" / f"some-seed{seed}" / "episode.mp4").write_bytes(b"video of seed %d" % seed)
    main(["--report-only", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")])
    text = (tmp_path / "out" / "report.html").read_text()
    assert "data:video/mp4;base64," + base64.b64encode(b"video of seed 2").decode() in text
    assert text.count("data:video/mp4") == 1
