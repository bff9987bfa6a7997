"""Log lines of a broker: which loggers there are, how their lines look, and where they go.

The broker's parts log by the standard `logging`, and add what a machine should find:

    logger.info("topic %s deleted", topic, extra={"event": "topic.deleted", "fields": {...}})

`loggers` lists the loggers, `formats` writes the lines, and `output` sends them to standard error
and to files, without letting a reader that is too slow stop the broker.
"""
