"""Every command explains itself, and what the README tells to type is understood."""

import functools
import importlib
import io
import re
import shlex
import types
from pathlib import Path

import pytest
import tyro

README = Path(__file__).parents[2] / "README.md"
UNITS = {
    "agents.train": ["Environment steps", "[m]", "CPU threads", "discount"],
    "agents.evaluate": ["Episodes", ".mp4 or .gif"],
    "agents.export": ["ONNX", "JSON"],
    "agents.compare": ["Environment steps of each run", "Seeds 0"],
    "agents.pretrain": ["Environment steps", "[m/s]"],
    "agents.pretrain_offline": ["Gradient steps", ".npz"],
    "agents.benchmark.__main__": ["threads"],
    "envs.demonstrations.__main__": ["info", "convert"],
    "envs.record": ["HDF5", "grids"],
    "perception.diagnose.__main__": ["[m]", "[degrees]", "random actions"],
    "perception.visualize.__main__": ["out"],
    "tests.faults.__main__": ["Trainings to kill", "Disks to fill"],
}


class Parsed(Exception):
    """What a command was told, in place of doing it."""


def commands():
    """Commands in the README: in blocks, in the text and in tables."""
    text = README.read_text()
    typed = re.findall(r"^python -m (.+)$", text, re.MULTILINE) + re.findall(r"`python -m ([^`]+)`", text)
    words = [shlex.split(line, comments=True) for line in typed]
    return sorted({(module, " ".join(arguments)) for module, *arguments in words})


@pytest.fixture
def parse(monkeypatch):
    """Hand words to a command as a shell would, up to where it has understood them."""

    def run(module, words):
        command = importlib.import_module(module)

        def cli(what, **settings):
            if not isinstance(what, (type, types.UnionType)):  # a function: understand its arguments, do not call it
                what = functools.wraps(what)(lambda *args, **kwargs: None)
            raise Parsed(parser(what, **settings))

        with monkeypatch.context() as patched:
            parser = tyro.cli
            patched.setattr("sys.argv", [module, *words])
            patched.setattr(tyro, "cli", cli)
            command.main()

    return run


@pytest.mark.parametrize("module", UNITS)
def test_help(module, parse, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(module, ["--help"])
    assert stop.value.code == 0
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
    missing = [unit for unit in UNITS[module] if unit not in text]
    assert not missing, f"python -m {module} --help does not mention {missing}"


@pytest.mark.parametrize("module", UNITS)
def test_help_is_whole_on_a_terminal_that_knows_ascii_alone(module, parse, monkeypatch):
    texts = []
    for encoding in ("utf-8", "ascii"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr("sys.stdout", stream)
        with pytest.raises(SystemExit) as stop:
            parse(module, ["--help"])
        stream.flush()
        assert stop.value.code == 0
        lines = stream.buffer.getvalue().decode(encoding).encode("ascii", "replace").decode()
        texts.append(re.findall(r"[a-z]+", lines))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("module, arguments", commands())
def test_the_readme_s_commands_are_understood(module, arguments, parse):
    names = [name for name in UNITS if name.removesuffix(".__main__") == module]
    assert names, f"{module} is no command"
    with pytest.raises(Parsed):
        parse(names[0], shlex.split(arguments))


def test_the_readme_has_commands():
    assert {module for module, _ in commands()} >= {"agents.train", "agents.evaluate", "envs.record"}


@pytest.mark.parametrize("module", UNITS)
def test_an_unknown_option_is_refused(module, parse, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(module, ["--no-such-option", "1"])
    assert stop.value.code == 2 and capsys.readouterr().err
