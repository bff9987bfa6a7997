"""The diary: what was decided, when and why. Plain data; `broker/diary/` writes and keeps it."""
