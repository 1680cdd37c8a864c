"""The configuration: all settings, and how the file, the environment, and secret references are read.

May import replicas and below. Read `settings.py` first: it declares the frozen `Config`. `file_reader.py` reads the
file, `server_entry.py` reads one server in it, and `secret_references.py` resolves `${…}`. `config.schema.json` is
generated.
"""
