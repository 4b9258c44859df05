"""Packages import only to their left: envs → perception → shaping → agents."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("envs", "perception", "shaping", "agents")
# Command lines that compose what lies to their right as well; a folder is one with all its modules.
COMPOSITION_ROOTS = ("envs.record", "perception.diagnose", "perception.visualize")
# Rooms of `agents`, those that import nothing else of it first; each imports only from the levels before its own.
LEVELS = (
    ("config", "finite", "progress", "tasks"),
    ("replay",),
    ("collecting",),
    ("sac", "evaluation"),
    ("imitation",),
    ("methods",),
    ("prior", "runs"),
    ("report",),
    ("train", "evaluate", "export", "fit", "pretrain", "pretrain_offline"),
    ("benchmark", "launch"),
    ("compare",),
)
SIMULATOR = {"mujoco", "robosuite"}
FORBIDDEN = {
    "envs": {"torch", "torch_geometric", "stable_baselines3", "open3d", "perception", "shaping", "agents"},
    "perception": {"robosuite", "stable_baselines3", "shaping", "agents"},
    "shaping": {"stable_baselines3", "open3d", "agents"} | SIMULATOR,
    "agents": set(),
}


def imported_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and full name of every absolute import, those inside functions included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and top-level name of every absolute import."""
    for line, name in imported_names(source):
        yield line, name.partition(".")[0]


def composition_root(name: str) -> str | None:
    """Name the composition root that a dotted name belongs to."""
    return next((root for root in COMPOSITION_ROOTS if f"{name}.".startswith(f"{root}.")), None)


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_against_the_flow(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files, f"{package}/ holds no Python file"
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in files
        for line, module in imported_modules(file.read_text())
        if module in FORBIDDEN[package] and not (module in PACKAGES and composition_root(module_name(file)))
    ]
    assert not wrong, f"against envs → perception → shaping → agents: {wrong}"


def test_composition_roots_are_run_and_not_imported():
    """But for the report of a comparison, which shows the maps of Φ."""
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {name}"
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, name in imported_names(file.read_text())
        if composition_root(name) not in (None, composition_root(module_name(file)))
        and (file, composition_root(name)) != (ROOT / "agents/report/page.py", "perception.visualize")
    ]
    assert not wrong, f"imports of composition roots: {wrong}"


def all_modules() -> dict[str, Path]:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {module_name(file).removesuffix(".__init__"): file for file in files}


def imports_of(name: str, modules: dict[str, Path]) -> set[str]:
    """The project's modules that a module imports."""
    found = {
        full if full in modules else full.rpartition(".")[0] for _, full in imported_names(modules[name].read_text())
    }
    return (found & set(modules)) - {name}


def test_agents_imports_only_from_levels_before_its_own():
    level = {room: index for index, rooms in enumerate(LEVELS) for room in rooms}
    modules, wrong = all_modules(), []
    rooms = {name.split(".")[1] for name in modules if name.startswith("agents.")}
    assert rooms == set(level), "a room that is new has a level"
    for name in modules:
        if name.startswith("agents."):
            others = [other.split(".")[1] for other in imports_of(name, modules) if other.startswith("agents.")]
            own = name.split(".")[1]
            wrong += [f"{name} imports {room}" for room in others if room != own and level[room] >= level[own]]
    assert not wrong


def test_no_circle():
    modules = all_modules()
    TopologicalSorter({name: imports_of(name, modules) for name in modules}).prepare()  # raises CycleError


def test_no_folder_is_crowded():
    count = Counter(file.parent for file in all_modules().values())
    assert max(count.values()) <= 12, count.most_common(1)


def test_imports_inside_functions_are_seen():
    source = "def f():\n    from torch.nn import Module\n    import envs.push.tasks as p\n    from . import torch"
    assert list(imported_modules(source)) == [(2, "torch"), (3, "envs")]


def test_no_utils():
    files = [path.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    assert not [file for file in files if file.stem in {"utils", "common", "helpers"}]


def test_the_learner_is_exported_and_loaded_when_it_is_asked_for():
    script = "import sys, agents; print('torch' in sys.modules, agents.SAC.__module__, hasattr(agents, 'DQN'))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "agents.sac.algorithm", "False"], done.stderr


def test_light_imports():
    """The state pipeline starts without Open3D and without a GL library."""
    script = "import sys, envs, shaping; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"open3d", "OpenGL"} & set(done.stdout.split())
