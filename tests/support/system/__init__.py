"""Resources of the machine: ports, processes, certificates, and issuers of tokens."""
