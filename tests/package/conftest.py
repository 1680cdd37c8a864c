"""The package is built once for the tests that need it."""

from pathlib import Path

import pytest

from support.distribution import Distribution, an_environment, build


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(tmp_path_factory.mktemp("distribution"))


@pytest.fixture(scope="session")
def programs(distribution: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment in which there is emceepee and nothing that it does not need."""
    return an_environment(tmp_path_factory.mktemp("installed") / "environment", distribution.wheel)
