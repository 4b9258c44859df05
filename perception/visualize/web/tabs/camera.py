"""Camera tab: where the camera stands, what it sees, and how much of the puck that is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import viser

from envs.push.geometry import CAMERAS
from perception.rendering import RENDERERS
from perception.visualize.web.events import Events, ignoring
from perception.visualize.web.session import Frame, Session, depth_image
from perception.visualize.web.stage import Stage

FUSED = " + "  # between the names of cameras whose clouds are fused


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
        fused = FUSED.join(CAMERAS)
        chosen = FUSED.join(session.config.cameras)
        options = tuple(dict.fromkeys((chosen, *CAMERAS, fused)))
        self.camera = gui.add_dropdown("camera", options, initial_value=chosen, hint="The image is that of the first.")
        self.renderer = gui.add_dropdown("renderer", tuple(RENDERERS), initial_value=session.config.renderer)
        self.moving = gui.add_checkbox("move the camera", False, hint="Show its handles in the scene.")
        back = gui.add_button("put it back")
        black = np.zeros((8, 8, 3), np.uint8)
        self._depth, self._mask = (
            gui.add_image(black, label="depth and points"),
            gui.add_image(black, label="mask of the puck"),
        )
        for control in (self.camera, self.renderer):
            control.on_update(events.on(ignoring(self._changed)))
        back.on_click(events.on(ignoring(self._changed)))
        self.moving.on_update(events.on(self._offer))
        stage.gizmo.on_update(events.on_latest(ignoring(self._moved)))

    def told(self, frame: Frame) -> None:
        """Show the images and numbers of a frame."""
        view = frame.view
        distinct = len(np.unique(view.points, axis=0)) if frame.visible else 0
        self.seen.content = (
            f"**{100 * frame.unhidden:.0f} %** of the puck's pixels in the image are not hidden: {view.mask.sum()} "
            f"pixels, {distinct} distinct points"
        )
        self._depth.image = depth_image(view)
        self._mask.image = np.where(view.mask[..., None], np.uint8(255), np.uint8(30)).repeat(3, axis=-1)

    def _offer(self, event: Any) -> None:
        self._stage.gizmo.visible = self.moving.value
        if self.moving.value and event.client is not None:
            self._stage.look_at_camera(event.client)

    def _changed(self) -> None:
        self._session.set_scene(self.renderer.value, tuple(self.camera.value.split(FUSED)))
        self._show()
        self._stage.show_camera()
        self._stage.show_handles()

    def _moved(self) -> None:
        gizmo = self._stage.gizmo
        self._session.set_camera(np.array(gizmo.position), np.array(gizmo.wxyz))
        self._show()
        self._stage.show_camera()
