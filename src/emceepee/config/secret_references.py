"""Resolve references in a configuration, and detect literal secrets.

${NAME}  ${env:NAME}  ${NAME:-default}   an environment variable
${file:PATH}                             the text of a file, without its final line break
${keyring:SERVICE/NAME}                  a secret from the platform's keyring; needs the package `keyring`
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emceepee.bounds.files import check_regular, read_file
from emceepee.errors import near_names
from emceepee.wire.json_types import JsonObject

LARGEST_FILE = 64 << 10  # bytes; a larger file is not a secret
KEYRING_SECONDS = 60.0  # the time a user has to unlock the keyring
KINDS = ("env", "file", "keyring")
_REFERENCE = re.compile(
    r"\$\{(?:(?P<kind>env|file|keyring):(?!-)(?P<what>[^}]*)"
    r"|(?P<stranger>[A-Za-z]+):[A-Za-z_/.~][^}]*"  # but not shell expansions such as ${x:0:3} and ${x:+y}
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?)\}"
)
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL).fullmatch
_SECRET_NAME = re.compile(
    r"(?i)(^|[-_])(authorization|cookie|token|secret|password|passwd|passphrase|credentials?|api[-_]?key|key|pat)$"
)
_PASSWORD_IN_URL = re.compile(r"://[^/?#@:]*:[^/?#@]+@").search

AskKeyring = Callable[[str, str], str | None]
OnFailure = Callable[[str, "BadReference"], None]


class BadReference(Exception):
    """The reason why a reference cannot be resolved, and a remedy.

    Never shows resolved values. `missing` is the missing file.
    """

    def __init__(self, words: str, *, missing: Path | None = None) -> None:
        super().__init__(words)
        self.missing = missing


def ask_platform_keyring(service: str, name: str) -> str | None:
    """Raises: BadReference."""
    try:
        import keyring  # imported only if a reference needs it
    except ImportError:
        raise BadReference(
            "the package keyring is not installed: install emceepee[keyring], or use ${file:PATH} or a variable"
        ) from None
    answer: list[str | Exception | None] = []

    def ask() -> None:
        try:
            answer.append(keyring.get_password(service, name))
        except Exception as error:  # backends raise errors of any type
            answer.append(error)

    # A thread with a timeout: the keyring may prompt for its password while no user is present.
    asking = threading.Thread(target=ask, name="emceepee-keyring", daemon=True)
    asking.start()
    asking.join(KEYRING_SECONDS)
    if not answer:
        raise BadReference(f"the keyring did not answer within {KEYRING_SECONDS:g} s; unlock it first")
    if isinstance(answer[0], Exception):
        words = str(answer[0]).partition("\n")[0] or type(answer[0]).__name__
        raise BadReference(f"the keyring cannot be read for {service}/{name}: {words}")
    return answer[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Resolves references. Relative file paths start at `folder`."""

    environment: Mapping[str, str]
    folder: Path = Path()
    ask_keyring: AskKeyring = ask_platform_keyring
    opens_files: bool = True  # False: only check that files are readable, until the user agrees to read them

    def resolve(self, text: str) -> str:
        """Return the text with references resolved. Resolved values are not scanned again. Raises: BadReference."""
        parts: list[str] = []
        done = end = 0
        start = text.find("${")
        while start >= 0:
            if end <= start:
                end = text.find("}", start) + 1
            if not end:
                break
            # Match only up to the next brace: scanning to the end for each unclosed reference would take quadratic
            # time.
            found = _REFERENCE.fullmatch(text, start, end)
            if found is not None:
                parts += [text[done:start], self._look_up(found)]
                done = end
            start = text.find("${", start + 2 if found is None else end)
        return "".join([*parts, text[done:]])

    def resolve_all(self, value: Any, key: str, on_failure: "OnFailure") -> Any:
        """Resolve the references in a JSON value. If one fails, keep it as written and report its key.

        A disabled server stays as written, because its secrets may be missing.
        """
        if isinstance(value, str):
            try:
                return self.resolve(value)
            except BadReference as error:
                on_failure(key, error)
                return value
        if isinstance(value, list):
            return [self.resolve_all(item, f"{key}[{index}]", on_failure) for index, item in enumerate(value)]
        if isinstance(value, dict) and value.get("disabled") is not True:
            return {
                name: self.resolve_all(item, f"{key}.{name}" if key else name, on_failure)
                for name, item in value.items()
            }
        return value

    def _look_up(self, found: "re.Match[str]") -> str:
        if (stranger := found["stranger"]) is not None:
            near = near_names(stranger, KINDS)
            meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(KINDS)}"
            raise BadReference(f"{found[0]} is not a reference: {stranger} is not a supported source; {meant}")
        match found["kind"]:
            case "file":
                return self._file(found["what"])
            case "keyring":
                return self._secret(found["what"])
            case "env":
                if (named := _VARIABLE(found["what"])) is None:
                    raise BadReference(f"{found[0]} has no variable name; write ${{env:NAME}}")
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
        try:
            path = self.folder / Path(given).expanduser()
        except RuntimeError:  # it begins with ~ and an unknown user name
            path = self.folder / given
        try:
            if not self.opens_files:
                check_regular(path.stat(), path, LARGEST_FILE)
                return ""
            text = read_file(path, LARGEST_FILE).decode("utf-8")
        except FileNotFoundError:
            words = f"there is no file {path}; write the secret to it, and make it private"
            raise BadReference(words, missing=path) from None
        except (OSError, ValueError) as error:  # includes ValueError for a path with a null byte
            is_text = not isinstance(error, UnicodeDecodeError)
            why = (getattr(error, "strerror", None) or str(error)) if is_text else "it is no text in UTF-8"
            raise BadReference(f"the file {path} cannot be read: {why}") from None
        return text.removesuffix("\n").removesuffix("\r")

    def _secret(self, given: str) -> str:
        service, _, name = given.rpartition("/")
        if not service or not name:
            raise BadReference(f"${{keyring:{given}}} has no secret name; write ${{keyring:SERVICE/NAME}}")
        secret = self.ask_keyring(service, name)
        if secret is None:
            words = f"store it with keyring set {service} {name}"
            raise BadReference(f"the keyring has no secret for {service}/{name}; {words}")
        return secret


def is_secret_name(name: str) -> bool:
    """Return whether a header or variable with this name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None


def literal_secrets(entry: JsonObject, key: str) -> Iterator[str]:
    """Yield the keys in a server's raw entry whose values seem to be literal secrets."""
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
