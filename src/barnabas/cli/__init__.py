"""The `barnabas` command: one module per noun, imported only when its command is typed."""
