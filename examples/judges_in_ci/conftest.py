"""A fixture for pytest: how good the judges of a log are against people."""

import os

import pytest

import fewlabels as fl


@pytest.fixture(scope="session")
def judges() -> fl.Estimates:
    """The accuracy of every judge in the log that JUDGES_LOG names."""
    return fl.estimate(os.environ["JUDGES_LOG"], metrics=["accuracy"])
