"""The promises about safety, put under stress: `python -m stress NAME`. For development only."""
