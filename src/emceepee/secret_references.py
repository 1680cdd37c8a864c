"""Secrets by reference: what a configuration names is looked up, and what it spells out is noticed.

${NAME}  ${env:NAME}  ${NAME:-default}   a variable of the environment
${file:PATH}                             the text of a file, without the line break at its end
${keyring:SERVICE/NAME}                  what the platform's keyring has, with the package `keyring`
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emceepee.errors import near_names
from emceepee.json_types import JsonObject

LARGEST_FILE = 64 << 10  # bytes; what is larger is no secret
KEYRING_SECONDS = 60.0  # for someone to unlock it
KINDS = ("env", "file", "keyring")
_REFERENCE = re.compile(
    r"\$\{(?:(?P<kind>env|file|keyring):(?!-)(?P<what>[^}]*)"
    r"|(?P<stranger>[A-Za-z]+):[A-Za-z_/.~][^}]*"  # and not what shells know: ${x:0:3}, ${x:+y}
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?)\}"
)
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL).fullmatch
_SECRET_NAME = re.compile(
    r"(?i)(^|[-_])(authorization|cookie|token|secret|password|passwd|passphrase|credentials?|api[-_]?key|key|pat)$"
)
_PASSWORD_IN_URL = re.compile(r"://[^/?#@:]*:[^/?#@]+@").search

AskKeyring = Callable[[str, str], str | None]


class BadReference(Exception):
    """Why it leads to nothing, and what to do. Never shows what others lead to."""


def ask_platform_keyring(service: str, name: str) -> str | None:
    """Raises: BadReference."""
    try:
        import keyring  # which is loaded by whoever uses it, and by nobody else
    except ImportError:
        raise BadReference(
            "the package keyring is not installed: install emceepee[keyring], or use ${file:PATH} or a variable"
        ) from None
    answer: list[str | Exception | None] = []

    def ask() -> None:
        try:
            answer.append(keyring.get_password(service, name))
        except Exception as error:  # of whichever backend it has
            answer.append(error)

    # It may ask someone to unlock it, who may not be there.
    asking = threading.Thread(target=ask, name="emceepee-keyring", daemon=True)
    asking.start()
    asking.join(KEYRING_SECONDS)
    if not answer:
        raise BadReference(f"the keyring did not answer within {KEYRING_SECONDS:g} s; unlock it first")
    if isinstance(answer[0], Exception):
        words = str(answer[0]).partition("\n")[0] or type(answer[0]).__name__
        raise BadReference(f"the keyring cannot be asked for {service}/{name}: {words}")
    return answer[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Where things are looked up. Files are looked for from `folder` on."""

    environment: Mapping[str, str]
    folder: Path = Path()
    ask_keyring: AskKeyring = ask_platform_keyring

    def resolve(self, text: str) -> str:
        """The text with everything that it refers to; what that holds is not looked at again. Raises: BadReference."""
        return _REFERENCE.sub(self._look_up, text) if "${" in text else text

    def _look_up(self, found: "re.Match[str]") -> str:
        if (stranger := found["stranger"]) is not None:
            near = near_names(stranger, KINDS)
            meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(KINDS)}"
            raise BadReference(f"{found[0]} is no reference: nothing is looked up by {stranger}; {meant}")
        match found["kind"]:
            case "file":
                return self._file(found["what"])
            case "keyring":
                return self._secret(found["what"])
            case "env":
                if (named := _VARIABLE(found["what"])) is None:
                    raise BadReference(f"{found[0]} names no variable; write ${{env:NAME}}")
                return self._variable(named["name"], named["default"])
        return self._variable(found["name"], found["default"])

    def _variable(self, name: str, default: str | None) -> str:
        value = self.environment.get(name)
        if value or (value is not None and default is None):
            return value
        if default is None:
            raise BadReference(f"the environment has no variable {name}; set it, or write ${{{name}:-default}}")
        return default

    def _file(self, given: str) -> str:
        path = self.folder / Path(given).expanduser()
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
            if len(content) > LARGEST_FILE:
                raise BadReference(f"the file {path} is larger than {LARGEST_FILE} bytes, which is more than a secret")
            text = content.decode("utf-8")
        except FileNotFoundError:
            raise BadReference(f"there is no file {path}; write the secret there, and close it to others") from None
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text in UTF-8"
            raise BadReference(f"the file {path} cannot be read: {why}") from None
        return text.removesuffix("\n").removesuffix("\r")

    def _secret(self, given: str) -> str:
        service, _, name = given.rpartition("/")
        if not service or not name:
            raise BadReference(f"${{keyring:{given}}} names no secret; write ${{keyring:SERVICE/NAME}}")
        secret = self.ask_keyring(service, name)
        if secret is None:
            words = f"put it there with keyring set {service} {name}"
            raise BadReference(f"the keyring has nothing for {service}/{name}; {words}")
        return secret


def is_secret_name(name: str) -> bool:
    """Whether a header or a variable of that name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None


def literal_secrets(entry: JsonObject, key: str) -> Iterator[str]:
    """The keys of a server's entry, as it is written, under which secrets seem to stand themselves."""
    for part in ("headers", "env"):
        values: Any = entry.get(part)
        if isinstance(values, dict):
            for name, value in values.items():
                if isinstance(value, str) and value.strip() and "${" not in value and is_secret_name(name):
                    yield f"{key}.{part}.{name}"
    for name in ("url", "serverUrl"):
        url = entry.get(name)
        if isinstance(url, str) and "${" not in url and _PASSWORD_IN_URL(url):
            yield f"{key}.{name}"
