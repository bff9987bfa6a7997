"""Topics as files and back: Parquet, CSV or JSON lines, with every field that a record has."""
