"""The configuration of `emceepee auth`: the same servers and state as `emceepee serve`."""

import argparse
from collections.abc import Mapping
from dataclasses import replace

from emceepee.cli.egress_options import egress_settings
from emceepee.cli.setup.auth_outcome import AuthError
from emceepee.config.file_reader import load
from emceepee.config.settings import Config, ConfigError, check_secrets, locate_state
from emceepee.store.location import SQLITE


def auth_config(options: argparse.Namespace, environment: Mapping[str, str]) -> Config:
    """Raises: AuthError."""
    try:
        config = load(options.config, environment, only=getattr(options, "server", None))
        config = replace(
            config,
            egress=egress_settings(options.ca_bundle, environment),
            location=locate_state(config, options.state, environment, usual=SQLITE),
            secrets=options.secrets or config.secrets,
        )
        if config.location.is_memory:
            raise AuthError(
                "state is stored in memory, where a login would end with this command: pass --state sqlite, here and "
                "to the emceepee that will use the login"
            )
        check_secrets(config)
    except ConfigError as error:
        raise AuthError(str(error)) from None
    return config
