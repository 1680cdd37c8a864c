"""What the machine has: ports, processes, certificates, an issuer of tokens."""
