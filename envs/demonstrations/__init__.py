"""Demonstrations: one type, and files in robomimic's HDF5 layout that are checked when they are read.

    data                      attributes: env_args (JSON, robomimic's robosuite kind), total [steps]
    ├── demo_0                attributes: num_samples = H, grid, seed, end_effector (2,) [m], model_file (MJCF)
    │   ├── obs/state         (H + 1, 8)      [s_PE, v_PE, s_PG, v_PG] [m, m/s]
    │   ├── obs/pointcloud    (H + 1, n, 4)   [p_i − E, p_i − G] [m]
    │   ├── obs/puck_pose     (H + 1, 7)      position [m] and quaternion (w, x, y, z), world frame
    │   ├── actions           (H, 2)          in [−1, 1]; missing where the demonstration is action-free
    │   ├── rewards, dones    (H,)            1 at the last step, 0 before
    │   ├── states            (H, 1 + nq + nv) the simulator before each action: time [s], joint positions, velocities
    │   └── last_state        (1 + nq + nv,)  after the last action
    └── …
    mask                      optional
    └── train, valid, …       names of demonstrations, for `filter_key`

Unlike robomimic's, observations include the last one, which lies in the goal set. `states` and `model_file` are what
robosuite's and robomimic's playback read, after ``import envs``.

**Playback** by `states` (`envs.push.playback.play_states`) is exact on any machine. Playback by actions is not: the
controller solves linear systems, BLAS has other kernels for other processors, which round otherwise, and contacts
amplify that to centimetres. The same actions from the same state give the same episode where processor type
(``OPENBLAS_CORETYPE``), BLAS, its number of threads, and the versions of MuJoCo and numba are the same, in the control
loop in which they were recorded, `PushEnv`'s; robosuite's own is 1e-7 away after a step, and that grows likewise.

**A demonstration ends where the task first ends** (`first_success`). Files may go on, and one file may serve
observations that succeed at different speeds: whoever uses demonstrations gives `load_demonstrations` the task's
reward, and each is cut there.
"""

from envs.demonstrations.robomimic import load_demonstrations, save_demonstrations
from envs.demonstrations.success import first_success
from envs.demonstrations.trajectory import Trajectory, warn_if_longer

__all__ = ["Trajectory", "first_success", "load_demonstrations", "save_demonstrations", "warn_if_longer"]
