"""Pictures show what is there: points on the puck, images upright, Φ where the puck would be."""

import dataclasses
import subprocess

import h5py
import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from envs.demonstrations import Trajectory, save_demonstrations
from envs.push.geometry import PUCK_RADIUS, RIM, SLOT, TABLE_HEIGHT
from envs.record import demonstrate
from perception.cameras import Intrinsics
from perception.point_cloud import back_project, open3d, transform
from perception.visualize.__main__ import main
from perception.visualize.film import Film, film_suffix, write_film
from perception.visualize.heatmap import draw_heatmap
from perception.visualize.landscape import curves, overlaps_wall, survey
from perception.visualize.scene import Scene, project, replay, straying
from shaping.potential import Potential
from shaping.value import ValueEstimator

STEPS = 4
WALLS = [*SLOT.walls().values(), *RIM.values()]
GOAL = np.array(SLOT.goal)


@pytest.fixture(scope="module")
def scene():
    scene = Scene(cameras=("overhead", "oblique"))
    yield scene
    scene.close()


@pytest.fixture(scope="module")
def whole(scene) -> Trajectory:
    trajectory = demonstrate(scene.env, grid=0, seed=0, clouds=True)
    assert trajectory is not None
    return trajectory


@pytest.fixture(scope="module")
def demonstration(whole) -> Trajectory:
    """The last steps of the expert, so that the puck moves; from their own start, so without a seed."""
    return Trajectory({k: v[-STEPS - 1 :] for k, v in whole.observations.items()}, whole.actions[-STEPS:])


@pytest.fixture(scope="module")
def files(demonstration, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    states = {k: v for k, v in demonstration.observations.items() if k != "pointcloud"}
    save_demonstrations(folder / "both.hdf5", [demonstration], {})
    save_demonstrations(folder / "states.hdf5", [Trajectory(states)], {})
    foreign = Trajectory(states, states=np.zeros((STEPS + 1, 3)))
    save_demonstrations(folder / "foreign.hdf5", [foreign], {})
    ValueEstimator("state", "state").save(folder / "state.pt")
    ValueEstimator("pointcloud", "centroid").save(folder / "pointcloud.pt")
    return folder


def random_pose(rng: np.random.Generator) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    pose[:3, 3] = rng.normal(size=3)
    return pose


@pytest.mark.parametrize(("width", "height"), [(40, 30), (30, 40)])
def test_projection_inverts_back_projection(width, height):
    rng = np.random.default_rng(0)
    camera, pose = Intrinsics(width, height, 37.0), random_pose(rng)
    mask = rng.random((height, width)) < 0.3
    depth = rng.uniform(0.5, 2.0, (height, width))
    rows, columns = np.nonzero(mask)
    pixels = project(transform(back_project(depth, mask, camera), pose), pose, camera)
    np.testing.assert_allclose(pixels, np.stack([columns, rows], axis=-1) + 0.5, atol=1e-9)


@pytest.mark.parametrize("camera", ["overhead", "oblique"])
def test_points_are_drawn_on_the_red_puck(scene, camera):
    scene.env.reset(seed=1)
    view = scene.view(camera, "")
    red = view.rgb[..., 0] > 2.0 * view.rgb[..., 1].astype(float) + 20
    scale = view.rgb.shape[0] // view.mask.shape[0] + 1
    columns, rows = np.floor(view.pixels).astype(int).T
    seen = [red[r - scale : r + scale + 1, c - scale : c + scale + 1].any() for r, c in zip(rows, columns, strict=True)]
    assert np.mean(seen) > 0.9
    middle = np.argwhere(view.mask).mean(axis=0) / view.mask.shape
    np.testing.assert_allclose(np.argwhere(red).mean(axis=0) / red.shape, middle, atol=0.02)


def test_surroundings_have_the_puck_in_its_colour_and_place(scene):
    scene.env.reset(seed=1)
    points, colors = scene.surroundings(scene.view("overhead", ""), "overhead")
    red = points[colors[:, 0] > 2.0 * colors[:, 1] + 0.1]
    assert len(red) > 50
    distances = np.hypot(*(red[:, :2] - scene.base.puck_position[:2]).T)
    assert np.mean(distances < PUCK_RADIUS + 0.005) > 0.95
    assert np.median(points[:, 2]) == pytest.approx(TABLE_HEIGHT, abs=0.005)


@pytest.mark.parametrize("kept", ["states", "actions"])
def test_playback_is_the_recording(scene, whole, kept):
    shown = whole if kept == "states" else dataclasses.replace(whole, states=None)
    frames = list(replay(scene, shown))
    assert max(frame.distance for frame in frames) == 0.0 and all(frame.visible for frame in frames)
    recorded = whole.observations["pointcloud"]
    np.testing.assert_allclose([frame.cloud for frame in frames], recorded, atol=1e-6)
    points = whole.observations["pointcloud"][-1, :, 2:] + scene.base.goal_position
    np.testing.assert_allclose(scene.env.points_world[:, :2], points, atol=1e-6)


def test_states_are_shown_and_not_simulated(scene, whole):
    """Nor do the actions matter, whose own playback goes elsewhere."""
    other = dataclasses.replace(whole, actions=-whole.actions, seed=None)
    assert max(frame.distance for frame in replay(scene, other)) == 0.0
    assert straying(scene, whole) == 0.0
    assert straying(scene, other) > 0.1


def test_without_actions_the_puck_is_put_where_it_was(scene, demonstration):
    poses = demonstration.observations["puck_pose"].copy()
    poses[:, 2] += 0.1  # a hand lifts it
    rows = {"pointcloud": demonstration.observations["pointcloud"], "puck_pose": poses}
    for step, frame in enumerate(replay(scene, Trajectory(rows))):
        assert frame.distance < 1e-9
        np.testing.assert_allclose(scene.base.puck_pose, poses[step])
        assert scene.env.points_world[:, 2].min() > TABLE_HEIGHT + 0.09
    only_states = Trajectory({"state": demonstration.observations["state"]})
    for step, _ in enumerate(replay(scene, only_states)):
        np.testing.assert_allclose(scene.base.puck_position[:2], poses[step, :2], atol=1e-6)
        expected = demonstration.observations["state"][step, :2]
        tip = scene.base.end_effector_position[:2]
        np.testing.assert_allclose(scene.base.puck_position[:2] - tip, expected, atol=1e-4)


def make_potential(observation: str, demonstration: Trajectory, **settings) -> Potential:
    encoder = {"state": "state", "pointcloud": "centroid"}[observation]
    return Potential(ValueEstimator(observation, encoder), [demonstration.observations[observation]], **settings)


@pytest.mark.parametrize("combine", ["product", "sum"])
def test_landscape_is_the_potential_of_resets(scene, demonstration, combine):
    potential = make_potential("state", demonstration, combine=combine, radius=0.15)
    start, _ = scene.base.reset(seed=1)
    puck, tip = scene.base.puck_position[:2], scene.base.end_effector_position[:2]
    land = survey(potential, start, puck, tip, GOAL, WALLS, 0.02)
    for i, j in [(39, 46), (42, 50), (45, 40), (30, 60), (32, 46)]:
        at = np.array([land.x[i], land.y[j]])
        observation, _ = scene.base.reset(options={"puck": at, "end_effector": at + tip - puck})
        assert land.potential[i, j] == pytest.approx(potential(observation[None])[0], abs=1e-4)
    success = land.potential[len(land.x) // 2, len(land.y) // 2]  # the goal is at the origin
    assert success == potential.terminal
    np.testing.assert_allclose(land.states, demonstration.observations["puck_pose"][:, :2], atol=1e-6)


def test_landscape_of_clouds_moves_the_points(scene, demonstration):
    potential = make_potential("pointcloud", demonstration, radius=0.15)
    start, _ = scene.env.reset(seed=1)
    puck, tip = scene.base.puck_position[:2], scene.base.end_effector_position[:2]
    land = survey(potential, start, puck, tip, GOAL, WALLS, 0.02)
    moved = start.copy()
    moved[:, 2:] += (np.array([land.x[40], land.y[50]]) - puck).astype(np.float32)
    assert land.potential[40, 50] == pytest.approx(potential(moved[None])[0], abs=1e-5)
    np.testing.assert_allclose(land.states, demonstration.observations["puck_pose"][:, :2], atol=0.02)


@pytest.mark.parametrize(("combine", "joined"), [("product", "V_d · Ṽ_g"), ("sum", "V_d + Ṽ_g")])
def test_colour_bars_say_in_words_what_they_are_of(scene, demonstration, combine, joined):
    """Above all which is the map's and which the states'."""
    potential = make_potential("state", demonstration, combine=combine, radius=0.15)
    start, _ = scene.base.reset(seed=1)
    puck, tip = scene.base.puck_position[:2], scene.base.end_effector_position[:2]
    figure = draw_heatmap([[survey(potential, start, puck, tip, GOAL, WALLS, 0.02)]], WALLS, np.zeros((1, 2)))
    _, map_bar, state_bar = (axes.get_ylabel() for axes in figure.axes)
    assert "grey: Φ with the puck" in map_bar and f"dots: {joined} of a demonstrated state" in state_bar
    assert "⊕" not in state_bar and "from the start to it" in state_bar
    FigureCanvasAgg(figure).draw()  # labels within the picture, apart from each other
    shown = [axes.yaxis.label.get_window_extent() for axes in figure.axes[1:]]
    assert not shown[0].overlaps(shown[1]) and all(figure.bbox.containsx(box.x1) for box in shown)
    assert all(figure.bbox.containsy(y) for box in shown for y in (box.y0, box.y1))


def test_chosen_state_has_the_best_score_in_range(scene, demonstration):
    potential = make_potential("state", demonstration, radius=0.5)
    start, _ = scene.base.reset(seed=1)
    land = survey(potential, start, scene.base.puck_position[:2], np.zeros(2), GOAL, WALLS, 0.02)
    assert land.chosen is not None and land.in_range.all()
    assert land.scores[land.chosen] == pytest.approx(land.scores.max())


def test_puck_in_a_wall_against_brute_force():
    positions = np.random.default_rng(0).uniform([-0.32, -0.15], [0.15, 0.15], (500, 2))
    angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 90), np.linspace(0, PUCK_RADIUS, 12))
    disc = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1, 2)
    expected = np.zeros(len(positions), bool)
    for center, size in WALLS:
        inside = np.abs(positions[:, None] + disc - center[:2]) < size[:2]
        expected |= inside.all(axis=-1).any(axis=-1)
    assert np.mean(overlaps_wall(positions, WALLS) == expected) > 0.98  # the disc has gaps
    assert not overlaps_wall(GOAL[None], WALLS)[0]


def test_curves_end_in_the_goal_set(demonstration):
    potential = make_potential("state", demonstration, combine="product")
    rows = curves(potential, demonstration.observations["state"])
    assert {name: len(values) for name, values in rows.items()} == dict.fromkeys(("Φ", "V_d", "Ṽ_g"), STEPS + 1)
    assert rows["Φ"][-1] == potential.terminal
    np.testing.assert_allclose(rows["Φ"][:-1], (rows["V_d"] * rows["Ṽ_g"])[:-1], atol=1e-6)


def test_film_draws_points_where_they_are(tmp_path):
    film = Film("values", {"V_d": np.linspace(0, 1, 3)}, (480, 480))
    frame = film.frame(1, np.zeros((480, 480, 3), np.uint8), np.array([[100.0, 50.0]]))
    left = frame[:, :480].astype(int).sum(axis=-1)
    np.testing.assert_allclose(np.argwhere(left > 200).mean(axis=0), [50, 100], atol=1.5)
    frames = [film.frame(step, np.zeros((480, 480, 3), np.uint8), np.zeros((1, 2))) for step in range(3)]
    for name in ("film.mp4", "film.gif"):
        write_film(tmp_path / name, frames)
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(tmp_path / name), "-r", "20"]
        command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
        assert len(subprocess.run(command, capture_output=True, check=True).stdout) == len(frames) * frame.size


def test_command_writes_everything(files, tmp_path, capsys):
    arguments = ["--out", str(tmp_path), "--demonstrations", str(files / "both.hdf5")]
    main([*arguments, "--estimator", str(files / "pointcloud.pt")])
    printed = capsys.readouterr().out.splitlines()[-1]
    names = {path.name for path in tmp_path.iterdir()}
    assert {"panel.png", "potential.png", "cloud.ply", "scene.ply"} < names and len(names) == 5
    assert all(str(tmp_path / name) in printed for name in names)
    assert len(open3d().io.read_point_cloud(str(tmp_path / "cloud.ply")).points) > 20
    for name in ("panel.png", "potential.png"):
        assert np.ptp(imageio.imread(tmp_path / name)) > 100
    before = (tmp_path / "panel.png").stat().st_mtime_ns
    fails(capsys, [*arguments, "--estimator", str(files / "state.pt")], "--overwrite")
    assert (tmp_path / "panel.png").stat().st_mtime_ns == before


def test_the_film_ends_at_the_first_success_and_shows_the_states(files, whole, tmp_path, capsys):
    path = tmp_path / "shown.hdf5"
    longer = {k: np.concatenate([v[-5:], np.repeat(v[-1:], 7, axis=0)]) for k, v in whole.observations.items()}
    states = np.concatenate([whole.states[-5:], np.repeat(whole.states[-1:], 7, axis=0)])
    actions = np.concatenate([whole.actions[-4:], np.zeros((7, 2))])
    save_demonstrations(path, [whole, Trajectory(longer, actions, states=states)], {})
    with h5py.File(path, "r+") as content:
        content["mask/short"] = np.array(["demo_1"], dtype="S8")
    given = ["--demonstrations", str(path), "--estimator", str(files / "state.pt"), "--filter-key", "short"]
    main([*given, "--out", str(tmp_path / "pictures")])
    said = capsys.readouterr().out
    assert f"{path}: demo_1: cut from 11 to 4 steps, at the first success of state observations" in said
    assert "demo_0" not in said and "filmed step 4 of 4" in said
    assert "the puck stayed within 0.0 mm of the recording by its states" in said
    assert "played back by its actions it strays up to" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--cameras", "nowhere"], "overhead"),
        (["--renderer", "nope"], "ray"),
        (["--demonstrations", "missing.hdf5"], "missing.hdf5"),
        (["--estimator", "missing.pt"], "missing.pt"),
        (["--estimator", "{files}/pointcloud.pt"], "pointcloud"),
        (["--radius", "-1"], "radius"),
        (["--seed", "-1"], "seed"),
        (["--filter-key", "train"], "has no filter key 'train'; it has none"),
        (["--demonstrations", "{files}/foreign.hdf5"], "demo_0: states: rows have 3 numbers, but this task's have 28"),
    ],
)
def test_bad_input_ends_in_one_line(files, tmp_path, capsys, arguments, named):
    arguments = [argument.format(files=files) for argument in arguments]
    given = {"--demonstrations": files / "states.hdf5", "--estimator": files / "state.pt", "--out": tmp_path / "new"}
    defaults = [str(part) for name, path in given.items() if name not in arguments for part in (name, path)]
    fails(capsys, [*defaults, *arguments], named)
    assert not (tmp_path / "new").exists()


def fails(capsys, arguments: list[str], named: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    error = capsys.readouterr().err
    assert stop.value.code == 2 and named in error and error.count("\n") == 1, error


def test_a_start_without_the_puck_in_sight_has_no_map_of_clouds(files, tmp_path, capsys):
    """The cloud would be the end effector's, and the map displaced."""
    arguments = ["--seed", "50", "--demonstrations", str(files / "both.hdf5"), "--out", str(tmp_path)]
    main([*arguments, "--estimator", str(files / "pointcloud.pt")])
    said = capsys.readouterr().out
    assert f"left out {tmp_path / 'cloud.ply'}: no camera sees the puck" in said
    assert f"left out {tmp_path / 'potential.png'}: it is that of clouds" in said
    assert {path.name for path in tmp_path.iterdir()} == {"panel.png", "scene.ply", f"demonstration{film_suffix()}"}
