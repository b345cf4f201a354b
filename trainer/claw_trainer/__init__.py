"""Learning: the policy, what is minimised, and the run that makes an adapter out of a person's chats."""

from . import cpu

cpu.prepare()  # before any module of this package imports torch
