"""Topics as files and back, with every field that a record has.

formats.py         which format a file has, and how one is opened
parquet_file.py    Parquet, column by column       needs pyarrow (the extra `arrow`)
jsonl_file.py      a JSON object per line, as `barnabas consume --json` prints them
csv_file.py        a table of strings
text.py            bytes as strings, without loss
output.py          files in a directory, or one; a file is renamed when it is complete
exporting.py       from a topic to files            importing.py      from files to a topic
"""
