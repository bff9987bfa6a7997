"""What administrators ask of a cluster: async functions over a `Switchboard`, a module per noun.

Functions about many things answer for each of them: a result, or the `RequestError` that it met.
"""
