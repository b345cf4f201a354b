"""Makes the pairs of the judge's second question, "does this reply follow this hint?": data/judge/follows-*.jsonl."""
