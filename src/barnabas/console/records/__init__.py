"""The records of a topic in the console: browse, search, decode, send and export them."""
