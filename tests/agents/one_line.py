"""How a command ends on input that it refuses."""

import signal

import pytest

PATIENCE = 60  # [s]


def one_line(command, arguments, capsys) -> str:
    """Run a command that must end soon with status 2 and one line on standard error, which is returned."""

    def interrupt(*_):
        raise KeyboardInterrupt  # which ends a command with status 130

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(PATIENCE)
    try:
        with pytest.raises(SystemExit) as stop:
            command(arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    captured = capsys.readouterr()
    assert stop.value.code == 2 and captured.err.count("\n") == 1, captured.err
    return captured.err
