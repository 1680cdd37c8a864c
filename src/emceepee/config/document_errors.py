"""What can be wrong with a client's file, in words for whoever runs the command."""


class ClientError(Exception):
    """Nothing was changed; the text says what to do."""


class BadDocument(ClientError):
    """The file cannot be read as what it should be."""
