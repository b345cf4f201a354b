"""Bad and good adapters, made on purpose and put to the gate: how often it is wrong."""
