"""Errors in client files, with messages for the user of the command line."""


class ClientError(Exception):
    """No file was changed; the message describes what to do."""


class BadDocument(ClientError):
    """The file is not valid for its format."""
