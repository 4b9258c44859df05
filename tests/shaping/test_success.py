"""A task says whether it succeeded, in one of the ways that tasks do."""

import numpy as np
import pytest

from shaping.success import succeeded


@pytest.mark.parametrize("value", [True, 1, 1.0, np.True_, np.float32(1), np.array(1.0), np.array([True])])
def test_every_kind_of_flag_is_read(value):
    assert succeeded({"is_success": value}) is True
    assert succeeded({"is_success": 0 * value}) is False
    assert succeeded({"done": {"well": value}}, lambda info: info["done"]["well"]) is True


@pytest.mark.parametrize("value", [0.7, np.nan, "False", np.zeros(3), -1, [], {"a": 1}])
def test_what_is_neither_true_nor_false_is_refused(value):
    for ended in (True, False):
        with pytest.raises(ValueError, match=r"success='won' gave .*; it must be true or false"):
            succeeded({"won": value}, "won", ended)


@pytest.mark.parametrize("success", ["is_success", lambda info: info["is_success"], lambda info: None])
@pytest.mark.parametrize("info", [{}, {"success": True}])
def test_what_is_not_said_is_no_success_before_the_end_and_an_error_at_it(success, info):
    assert not succeeded(info, success, ended=False)
    with pytest.raises(ValueError, match="give success=") as stop:
        succeeded(info, success)
    assert all(key in str(stop.value) for key in info) and "\n" not in str(stop.value)
