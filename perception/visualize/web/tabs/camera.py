"""Camera tab: where the camera stands, what it sees, and how much of the puck that is."""

from collections.abc import Callable

import numpy as np
import viser

from envs.push.geometry import CAMERAS
from perception.rendering import RENDERERS
from perception.visualize.web.events import Events, ignoring
from perception.visualize.web.session import Frame, Session, depth_image
from perception.visualize.web.stage import Stage


class CameraTab:
    """Controls of the camera and of the renderer, with depth image and mask.

    Args:
        server: Server of the page.
        session: What is shown.
        stage: Nodes of the scene.
        events: Queue of calls.
        show: Called when the frame is to be shown anew.
    """

    def __init__(
        self, server: viser.ViserServer, session: Session, stage: Stage, events: Events, show: Callable[[], None]
    ) -> None:
        self._session, self._stage, self._show = session, stage, show
        gui = server.gui
        self.seen = gui.add_markdown("")
        self.camera = gui.add_dropdown("camera", tuple(CAMERAS), initial_value=session.camera)
        self.renderer = gui.add_dropdown("renderer", tuple(RENDERERS), initial_value=session.config.renderer)
        self.moving = gui.add_checkbox("move the camera", False, hint="Show handles in the scene that move the camera.")
        back = gui.add_button("put it back")
        black = np.zeros((8, 8, 3), np.uint8)
        self._depth, self._mask = (
            gui.add_image(black, label="depth and points"),
            gui.add_image(black, label="mask of the puck"),
        )
        for control in (self.camera, self.renderer):
            control.on_update(events.on(ignoring(self._changed)))
        back.on_click(events.on(ignoring(self._changed)))
        self.moving.on_update(events.on(lambda _: setattr(stage.gizmo, "visible", self.moving.value)))
        stage.gizmo.on_update(events.on(ignoring(self._moved)))

    def told(self, frame: Frame) -> None:
        """Show the images and numbers of a frame."""
        view = frame.view
        distinct = len(np.unique(view.points, axis=0)) if frame.visible else 0
        self.seen.content = (
            f"**{100 * frame.share:.0f} %** of the puck's pixels are visible: {view.mask.sum()} pixels, "
            f"{distinct} distinct points"
        )
        self._depth.image = depth_image(view)
        self._mask.image = np.where(view.mask[..., None], np.uint8(255), np.uint8(30)).repeat(3, axis=-1)

    def _changed(self) -> None:
        self._session.set_scene(self.renderer.value, self.camera.value)
        self._show()
        self._stage.show_camera()

    def _moved(self) -> None:
        gizmo = self._stage.gizmo
        self._session.set_camera(np.array(gizmo.position), np.array(gizmo.wxyz))
        self._show()
        self._stage.show_camera()
