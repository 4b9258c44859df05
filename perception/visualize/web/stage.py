"""The three-dimensional part of the page: bodies, points, demonstration, sub-goal, map of Φ and camera."""

from typing import Any

import numpy as np
import viser
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from envs.push.geometry import PUCK_HALF_HEIGHT, PUCK_RADIUS, SLOT, TABLE_HEIGHT
from perception.cameras import camera_to_world, intrinsics
from perception.visualize.heatmap import BLOCKED_COLOR
from perception.visualize.landscape import Landscape
from perception.visualize.scene import CLOUD_SIZE
from perception.visualize.web.meshes import geom_meshes
from perception.visualize.web.session import MAP_STEP, Frame, Session

PINK, GREEN, GREY = (255, 47, 160), (31, 181, 58), (70, 70, 70)
VIEW_FROM, VIEW_AT = (0.55, 0.45, 1.35), (0.05, 0.1, TABLE_HEIGHT)  # of the browser at the start, world frame [m]
PLANE = TABLE_HEIGHT + PUCK_HALF_HEIGHT  # height in which the puck is dragged [m]
UNLIT: Any = {"cast_shadow": False, "receive_shadow": False}  # shadows are slow where a browser draws in software
LIFT = 0.001  # of flat marks over the table, so that they are not hidden by it [m]


class Stage:
    """Nodes of the scene in the browser.

    Args:
        server: Server of the page.
        session: What is shown.

    Attributes:
        puck: Frame of the puck.
        puck_mesh: Its mesh, which takes the mouse.
        tip_mesh: Mesh of the pusher, which takes the mouse.
        gizmo: Handles that move the camera.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._server, self._session = server, session
        server.initial_camera.position, server.initial_camera.look_at = VIEW_FROM, VIEW_AT
        server.scene.set_up_direction("+z")
        model = session.scene.base.model
        self._bodies: dict[int, Any] = {}
        meshes: dict[str, Any] = {}
        for mesh in geom_meshes(model):
            name = model.body(mesh.body).name
            if mesh.body not in self._bodies:
                self._bodies[mesh.body] = server.scene.add_frame(f"/bodies/{name}", show_axes=False)
            meshes[name] = server.scene.add_mesh_simple(
                f"/bodies/{mesh.name}", mesh.vertices, mesh.faces, color=mesh.color, flat_shading=True, **UNLIT
            )
        self.puck = self._bodies[model.body("puck_main").id]
        self.puck_mesh, self.tip_mesh = meshes["puck_main"], meshes["gripper0_right_pusher"]
        floor = TABLE_HEIGHT + LIFT
        server.scene.add_cylinder("/goal", 0.006, 0.002, color=GREEN, position=(*SLOT.goal, floor))
        disc = server.scene.add_cylinder("/sub-goal", PUCK_RADIUS, 0.002, color=PINK, opacity=0.5)
        self._chosen, self._floor = disc, floor
        dots: dict[str, Any] = {"point_shape": "circle", "precision": "float32"}
        nothing = np.zeros((1, 3), np.float32)
        self._demonstration = server.scene.add_point_cloud("/demonstration", nothing, GREY, point_size=0.004, **dots)
        self._cloud = server.scene.add_point_cloud("/cloud", nothing, GREY, point_size=0.0015, **dots)
        self._points = server.scene.add_point_cloud("/points", nothing, PINK, point_size=0.004, **dots)
        self._map: Any = None
        self._camera = server.scene.add_camera_frustum("/camera", 1.0, 1.0, scale=0.04, thickness=0.002, color=GREY)
        self.gizmo = server.scene.add_transform_controls("/camera-handles", scale=0.15, visible=False)

    def show_demonstration(self) -> None:
        """Show the demonstrated positions of the puck, coloured by V_d."""
        places = self._session.demonstrated()
        self._demonstration.points = _lifted(places, self._floor)
        values = self._session.potential.demonstrated.value
        self._demonstration.colors = (255 * colormaps["viridis"](values)[:, :3]).astype(np.uint8)

    def show_camera(self) -> None:
        """Show where the camera stands, and what it covers."""
        model, camera = self._session.scene.base.model, self._session.camera
        self._camera.fov = 2 * np.arctan(CLOUD_SIZE / 2 / intrinsics(model, camera, CLOUD_SIZE, CLOUD_SIZE).focal)
        self._camera.position, self._camera.wxyz = self._camera_pose()

    def show_handles(self) -> None:
        """Put the handles where the camera stands."""
        self.gizmo.position, self.gizmo.wxyz = self._camera_pose()

    def look_at_camera(self, client: viser.ClientHandle) -> None:
        """Move a browser's view to the side of the table, so far back that camera and slot are in it."""
        position, _ = self._camera_pose()
        slot = np.array([*SLOT.goal, TABLE_HEIGHT])
        middle, distance = (position + slot) / 2, 1.5 * float(np.linalg.norm(position - slot))
        client.camera.position, client.camera.look_at = middle - (0.0, distance, 0.0), middle

    def _camera_pose(self) -> tuple[np.ndarray, np.ndarray]:
        base = self._session.scene.base
        pose = camera_to_world(base.model, base.data, self._session.camera)
        return pose[:3, 3], viser.transforms.SO3.from_matrix(pose[:3, :3]).wxyz

    def show(self, frame: Frame) -> None:
        """Show the present frame."""
        data = self._session.scene.base.data
        with self._server.atomic():
            for body, node in self._bodies.items():
                node.position, node.wxyz = data.xpos[body], data.xquat[body]
            self._points.points = frame.view.points.astype(np.float32)
            self._points.visible = frame.visible
            if len(frame.view.cloud):
                self._cloud.points = frame.view.cloud.astype(np.float32)
            self._cloud.visible = len(frame.view.cloud) > 0
            self._chosen.visible = frame.chosen is not None
            if frame.chosen is not None:
                self._chosen.position = (*frame.chosen, self._floor)

    def move_puck(self, place: Float[np.ndarray, "2"]) -> None:
        """Show the puck at a place on the table, xy [m], without points."""
        self._cloud.visible = self._points.visible = self._chosen.visible = False
        self.puck.position, self.puck.wxyz = (*place, PLANE), (1.0, 0.0, 0.0, 0.0)

    def show_map(self, landscape: Landscape | None) -> None:
        """Show Φ on the table in grey, or hide it."""
        if landscape is None:
            if self._map is not None:
                self._map.visible = False
            return
        phi = landscape.potential  # x down the rows, y along the columns
        grey = np.nan_to_num(phi / max(1.0, float(np.nanmax(phi))))
        blocked = np.array(to_rgb(BLOCKED_COLOR))  # where a wall leaves no room for the puck
        image = np.where(np.isnan(phi)[..., None], blocked, grey[..., None])
        image = (255 * np.dstack([image, np.full(phi.shape, 0.8)])).astype(np.uint8)
        height, width = (MAP_STEP * np.array(phi.shape)).tolist()
        # The image lies in the table's plane: its columns along y, its rows along x.
        turn = viser.transforms.SO3.from_matrix(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]))
        self._map = self._server.scene.add_image(
            "/map",
            image,
            width,
            height,
            wxyz=turn.wxyz,
            position=(0.0, 0.0, TABLE_HEIGHT + LIFT / 2),
            cast_shadow=False,
        )


def _lifted(places: Float[np.ndarray, "places 2"], height: float) -> Float[np.ndarray, "places 3"]:
    return np.column_stack([places, np.full(len(places), height)]).astype(np.float32)


def on_plane(
    eye: Float[np.ndarray, "3"], point: Float[np.ndarray, "3"], height: float = PLANE
) -> Float[np.ndarray, "2"] | None:
    """Return where the line from the eye through a point meets a horizontal plane, xy [m]; None if it does not.

    Args:
        eye: Position of the browser's camera, world frame [m].
        point: Point under the mouse, world frame [m].
        height: Height of the plane [m].
    """
    fall = eye[2] - point[2]
    ahead = (eye[2] - height) / fall if abs(fall) > 1e-9 else -1.0
    return eye[:2] + ahead * (point[:2] - eye[:2]) if ahead > 0 else None
