"""Job arrays for Slurm: the script that submitit writes is run, with stand-ins for Slurm's own programs."""

import dataclasses
import os
import subprocess

import pytest

from agents import runs
from agents.compare import main as compare
from agents.launch.slurm import Job, submit
from tests.agents.report.test_compare import finished_run

SBATCH = """#!/bin/sh
cp "$1" "$0.script"
echo Submitted batch job 12
"""
SRUN = """#!/bin/sh
while [ "${1#/}" = "$1" ]; do shift; done
while [ "${1%python*}" = "$1" ]; do shift; done
exec "$@"
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Put programs of Slurm's names on the path; sbatch keeps the script, srun runs the command on this machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {"sbatch": SBATCH, "srun": SRUN, "squeue": "#!/bin/sh\n", "sacct": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def run_script(slurm, number=None):
    """Run the submitted script as Slurm does, for one job of the array if there is one."""
    array = {} if number is None else {"SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": str(number)}
    variables = array | {
        "SLURM_JOB_ID": "12",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURM_NTASKS": "1",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_NODELIST": "here",
    }
    script = slurm / "sbatch.script"
    done = subprocess.run(["bash", script], env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_each_job_of_the_array_trains_or_resumes_its_run(small, slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainings = {tmp_path / "runs" / f"seed{seed}": small(seed=seed, threads=seed + 1) for seed in range(2)}
    parameters = ["slurm_partition=cpu", "timeout_min=30", "slurm_array_parallelism=2"]
    jobs = submit(trainings, tmp_path / "slurm", parameters)
    assert jobs == ["12_0", "12_1"]
    script = (slurm / "sbatch.script").read_text()
    wanted = ("--array=0-1%2", "--partition=cpu", "--time=30", "--cpus-per-task=2", "--job-name=pushcloud")
    assert all(f"#SBATCH {option}" in script for option in wanted), script
    run_script(slurm, 1)
    first, second = trainings
    assert not first.exists() and runs.read_result(second)["environment_steps"] == 200
    assert runs.read_config(second).seed == 1
    submit({second: dataclasses.replace(trainings[second], steps=300)}, tmp_path / "slurm", [])
    run_script(slurm)
    assert runs.read_result(second)["environment_steps"] == 300


def test_a_comparison_submits_what_is_missing(slurm, tmp_path, monkeypatch, capsys):
    """And ends without a report, which the runs of the jobs do not have yet."""
    monkeypatch.chdir(tmp_path)
    finished_run(tmp_path / "runs/push-slot-1-state-buffer-seed1", 1.0, steps=20_000)
    words = "--obs state --method buffer --seeds 3 --launcher slurm --slurm slurm_partition=cpu"
    compare(words.split())
    assert "submitted 2 jobs, 12_0 to 12_1; " in capsys.readouterr().out and not (tmp_path / "comparison").exists()
    script = (slurm / "sbatch.script").read_text()
    assert "#SBATCH --array=0-1%" in script and "#SBATCH --partition=cpu" in script, script


def test_a_job_that_ends_early_is_submitted_again(small, tmp_path):
    training = small()
    again = Job().checkpoint(training, tmp_path / "run", tmp_path)
    assert isinstance(again.function, Job) and again.args == (training, tmp_path / "run", tmp_path)


@pytest.mark.parametrize(
    "parameter, said",
    [("partition", "--slurm partition: give name=value"), ("=3", "--slurm =3: give name=value")],
)
def test_a_malformed_parameter_is_named(parameter, said, small, slurm, tmp_path):
    with pytest.raises(ValueError, match=said):
        submit({tmp_path / "run": small()}, tmp_path / "slurm", [parameter])


def test_an_unknown_parameter_is_named(small, slurm, tmp_path):
    with pytest.raises(ValueError, match="slurm_colour"):
        submit({tmp_path / "run": small()}, tmp_path / "slurm", ["slurm_colour=3"])


def test_what_slurm_refuses_is_named(small, slurm, tmp_path):
    (slurm / "sbatch").write_text("#!/bin/sh\necho sbatch: error: invalid partition >&2\nexit 1\n")
    with pytest.raises(ValueError, match=r"--launcher slurm: .*invalid partition"):
        submit({tmp_path / "run": small()}, tmp_path / "slurm", [])


def test_a_machine_without_slurm_is_named(small, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"--launcher slurm: .*slurm"):
        submit({tmp_path / "run": small()}, tmp_path / "slurm", [])
