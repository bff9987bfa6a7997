"""Pipelines from topics to topics and files, on Spark's own Declarative Pipelines.

A project is a directory with `spark-pipeline.yml` and definitions in Python or SQL, as Spark's
`spark-pipelines` has them: that command runs the same project. What this package adds is `init`
(a small project that works), `check` (what can be checked before any data moves, in one line
each) and `run` (with progress and lag, again and again if asked).

    templates    what `init` writes            sketch       the definitions, read without Spark
    spec         spark-pipeline.yml            checking     options, topics, checkpoints
    engine       a Spark driver in a child     updates      one update of the pipeline
    progress     rows, batches, lag, state     run          updates one after the other
    explaining   Spark's failures in a line    demo         clicks, for `barnabas demo`

`spec`, `templates`, `progress` and `explaining` know neither Spark nor a broker.
"""
