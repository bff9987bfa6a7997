"""Producer ids are allocated in blocks: one node has the last block that any broker took."""

from __future__ import annotations

from barnabas.coordination.contract import BadVersion, Coordination
from barnabas.metadata import tree_schema as nodes

BLOCK_SIZE = 1000


class ProducerIdBlocks:
    """Allocates blocks for one broker."""

    def __init__(self, tree: Coordination, broker_id: int) -> None:
        self._tree = tree
        self._broker_id = broker_id

    async def reserve(self, greatest: int) -> None:
        """Skip producer ids up to this one: adopted logs of another cluster use them."""
        data, stat = await self._tree.get(nodes.PRODUCER_ID_BLOCK)
        if greatest > nodes.decode_producer_ids(data):
            first = greatest // BLOCK_SIZE * BLOCK_SIZE
            last = first + BLOCK_SIZE - 1
            block = nodes.encode_producer_ids(self._broker_id, first, last)
            await self._tree.set(nodes.PRODUCER_ID_BLOCK, block, stat.version)

    async def take(self) -> range:
        """Allocate the next block."""
        while True:
            data, stat = await self._tree.get(nodes.PRODUCER_ID_BLOCK)
            first = nodes.decode_producer_ids(data) + 1
            last = first + BLOCK_SIZE - 1
            block = nodes.encode_producer_ids(self._broker_id, first, last)
            try:
                await self._tree.set(nodes.PRODUCER_ID_BLOCK, block, stat.version)
            except BadVersion:
                continue  # another broker took that block
            return range(first, last + 1)
