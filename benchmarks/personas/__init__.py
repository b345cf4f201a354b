"""Scripted people with one wish each: what they ask, how they correct and thank, and how their wish is tested."""
