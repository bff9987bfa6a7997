"""Real brokers for tests: `with Cluster() as cluster: connect(cluster.bootstrap)`.

The pytest plugin of this package is loaded by every pytest run in an environment with Barnabas, so
importing it must cost next to nothing: the broker is imported when a cluster starts.
"""

from barnabas.testing.cluster import Cluster

__all__ = ["Cluster"]
