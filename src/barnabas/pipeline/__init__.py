"""Pipelines from topics to topics and files, on Spark's own Declarative Pipelines.

A project is a directory with `spark-pipeline.yml` and definitions in Python or SQL, as for Spark's
`spark-pipelines`: that command runs the same project. This package adds `init` (a small project
that works), `check` (everything that can be checked before any data moves, one line each) and `run`
(with progress and lag, repeatedly if requested).

    templates    what `init` writes            sketch       the definitions, read without Spark
    spec         spark-pipeline.yml            checking     options, topics, checkpoints
    engine       a Spark driver in a child     updates      one update of the pipeline
    progress     rows, batches, lag, state     run          updates one after the other
    explaining   Spark's failures in a line    demo         clicks, for `barnabas demo`

`spec`, `templates`, `progress` and `explaining` know neither Spark nor a broker.
"""
