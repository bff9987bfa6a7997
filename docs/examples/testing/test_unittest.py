"""unittest: one cluster for the tests of a class."""

import unittest

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.testing import Cluster


class OrdersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(options={"auto.create.topics.enable": "false"}))

    def setUp(self):
        self.topic = self.id()  # topics outlive a test: each has its own
        with KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(self.topic, num_partitions=1)])

    def test_offsets_count_up(self):
        with KafkaProducer(bootstrap_servers=self.cluster.bootstrap) as producer:
            sent = [producer.send(self.topic, b"%d" % number) for number in range(3)]
            self.assertEqual([each.get(timeout=30).offset for each in sent], [0, 1, 2])

    def test_a_restart_keeps_what_was_flushed(self):
        with KafkaProducer(bootstrap_servers=self.cluster.bootstrap) as producer:
            producer.send(self.topic, b"before").get(timeout=30)
            self.cluster.restart(0)
            self.assertEqual(producer.send(self.topic, b"after").get(timeout=30).offset, 1)


if __name__ == "__main__":
    unittest.main()
