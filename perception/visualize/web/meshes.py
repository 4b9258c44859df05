"""Triangle meshes of the drawn geoms of a MuJoCo model, for a browser."""

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import trimesh
from jaxtyping import Float, Int

from perception.point_cloud import open3d
from perception.rendering.geoms import drawn_geoms

MOST_FACES = 1000  # of a mesh; larger ones are simplified, since a browser may draw in software
ROOM = 1.0  # smallest half size of the walls of the room, which are left out [m]


@dataclass(frozen=True)
class GeomMesh:
    """Mesh of one geom, in the frame of its body.

    Attributes:
        body: Index of the body.
        name: Name of the body and index of the geom, unique in the model.
        vertices: Positions of the vertices, body frame, shape (vertices, 3) [m].
        faces: Indices of the vertices of each triangle, shape (faces, 3).
        color: Red, green, blue, 0 to 255.
    """

    body: int
    name: str
    vertices: Float[np.ndarray, "vertices 3"]
    faces: Int[np.ndarray, "faces 3"]
    color: tuple[int, int, int]


def geom_meshes(model: mujoco.MjModel) -> Iterator[GeomMesh]:
    """Yield the meshes of all drawn geoms, but for planes, the room's walls and bodies that only mark targets."""
    for geom in np.flatnonzero(drawn_geoms(model)).tolist():
        body = int(model.geom_bodyid[geom])
        if model.body_mocapid[body] >= 0 or (body == 0 and model.geom_size[geom].max() > ROOM):
            continue
        shape = _shape(model, geom)
        if shape is None or not len(shape.faces):
            continue
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
        vertices = shape.vertices @ rotation.reshape(3, 3).T + model.geom_pos[geom]
        name = f"{model.body(body).name}/{geom}"
        yield GeomMesh(body, name, vertices, np.asarray(shape.faces), _color(model, geom))


def _shape(model: mujoco.MjModel, geom: int) -> trimesh.Trimesh | None:
    """Return the mesh of a geom in its own frame; None for shapes without a finite surface."""
    kind, size = mujoco.mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    if kind != mujoco.mjtGeom.mjGEOM_MESH and not size.any():
        return None
    match kind:
        case mujoco.mjtGeom.mjGEOM_MESH:
            return _simplified(model, int(model.geom_dataid[geom]))
        case mujoco.mjtGeom.mjGEOM_BOX:
            return trimesh.creation.box(2 * size)
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            return trimesh.creation.cylinder(size[0], 2 * size[1])
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            return trimesh.creation.capsule(2 * size[1], size[0])
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            return trimesh.creation.icosphere(radius=size[0])
        case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
            ball = trimesh.creation.icosphere()
            return trimesh.Trimesh(ball.vertices * size, ball.faces)
    return None


def _simplified(model: mujoco.MjModel, mesh: int) -> trimesh.Trimesh:
    """Return a mesh of the model, decimated to `MOST_FACES` triangles (Garland and Heckbert 1997)."""
    vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
    faces = model.mesh_face[model.mesh_faceadr[mesh] :][: model.mesh_facenum[mesh]]
    if len(faces) > MOST_FACES:
        o3d = open3d()
        fine = o3d.geometry.TriangleMesh(
            o3d.utility.Vector3dVector(vertices.astype(float)), o3d.utility.Vector3iVector(faces)
        )
        coarse = fine.merge_close_vertices(1e-6).simplify_quadric_decimation(MOST_FACES)
        vertices, faces = np.asarray(coarse.vertices), np.asarray(coarse.triangles)
    return trimesh.Trimesh(vertices, faces, process=False)


def _color(model: mujoco.MjModel, geom: int) -> tuple[int, int, int]:
    """Return the colour of a geom: of its material, averaged over its texture, else its own."""
    material = int(model.geom_matid[geom])
    color = model.geom_rgba[geom, :3] if material < 0 else model.mat_rgba[material, :3] * _texture(model, material)
    red, green, blue = np.round(255 * np.clip(color, 0, 1)).astype(int).tolist()
    return red, green, blue


def _texture(model: mujoco.MjModel, material: int) -> Float[np.ndarray, "3"]:
    """Return the mean colour of a material's texture in [0, 1], shape (3,); ones without a texture."""
    textures = model.mat_texid[material]
    texture = int(textures.max())
    if texture < 0:
        return np.ones(3)
    channels = int(model.tex_nchannel[texture])
    size = int(model.tex_height[texture] * model.tex_width[texture]) * channels
    pixels = model.tex_data[model.tex_adr[texture] :][:size].reshape(-1, channels)
    return pixels[:, :3].mean(axis=0) / 255
