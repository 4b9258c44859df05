"""Demonstrations: the type `Trajectory`, and files, which are validated when read.

`save_demonstrations` writes robomimic's HDF5 layout, and `load_demonstrations` reads it for a task:

    data                      attributes: env_args (JSON, robomimic's robosuite kind), total [steps]
    ├── demo_0                attributes: num_samples = H, grid, seed, end_effector (2,) [m], model_file (MJCF)
    │   ├── obs/state         (H, 8)          [s_PE, v_PE, s_PG, v_PG] [m, m/s]
    │   ├── obs/pointcloud    (H, n, 4)       [p_i − E, p_i − G] [m]
    │   ├── obs/puck_pose     (H, 7)          position [m] and quaternion (w, x, y, z), world frame
    │   ├── next_obs/…        likewise        the observations after each action
    │   ├── actions           (H, 2)          in [−1, 1]; missing if the demonstration is action-free
    │   ├── rewards, dones    (H,)            1 at the last step, 0 before, unless recorded otherwise
    │   ├── states            (H, 1 + nq + nv) simulator before each action: time [s], joint positions, velocities
    │   └── last_state        (1 + nq + nv,)  simulator after the last action
    └── …
    mask                      optional
    └── train, valid, …       names of demonstrations, for `filter_key`

Another task has other observations and actions of another width: `load_demonstrations` takes the shapes of those that
it reads and the bounds of an action. As a `Trajectory`, observations include the last of `next_obs`, which lies in the
goal set. Files without `next_obs` are read too: those of earlier versions, where `obs` includes it, and those of
robomimic, where what follows the last action is unknown, so that the last step is left out. `states` and `model_file`
are read by the playback of robosuite and robomimic, after ``import envs``.

`read_demonstrations` reads such files of any task as they were recorded, and Minari data sets and NumPy files as well.
`save_minari` writes Minari data sets.

**Playback** by `states` (`envs.push.playback.play_states`) is exact on any machine. Playback by actions is not: the
controller solves linear systems, BLAS uses different kernels on different processors, and contacts amplify the
difference in rounding to centimetres. The same actions from the same state give the same episode if processor type
(``OPENBLAS_CORETYPE``), BLAS, its number of threads, and the versions of MuJoCo and numba are the same, and only in the
control loop in which they were recorded, that of `PushEnv`; robosuite's control loop differs by 1e-7 after one step,
and the difference grows in the same way.

**A demonstration ends at the first success of the task** (`first_success`). A recording may continue after it, and one
file may be used with observations that have different success speeds: pass the goal set of the task to
`load_demonstrations`, which truncates each demonstration there (`envs.push.success.push_success`).
"""

from envs.demonstrations.load import load_demonstrations
from envs.demonstrations.minari import save_minari
from envs.demonstrations.read import read_demonstrations
from envs.demonstrations.save import save_demonstrations
from envs.demonstrations.success import first_success
from envs.demonstrations.trajectory import PUSH_SHAPES, Trajectory, warn_if_longer

__all__ = [
    "PUSH_SHAPES",
    "Trajectory",
    "first_success",
    "load_demonstrations",
    "read_demonstrations",
    "save_demonstrations",
    "save_minari",
    "warn_if_longer",
]
