"""The consumer of the ZooKeeper era: blocking streams over chunks, balanced by watches."""
