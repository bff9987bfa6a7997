// @platformatic/kafka: copy a topic to another in transactions, with the offsets of a group.
import { createRequire } from 'node:module'

const packages = createRequire(`${process.env.NODE_PATH}/index.js`)
const { Consumer, Producer, MessagesStreamModes, ProduceAcks, stringDeserializers, stringSerializers } =
  packages('@platformatic/kafka')
const [bootstrap, groupId, transactionalId, source, target] = process.argv.slice(2)
const shared = { clientId: 'copier', bootstrapBrokers: [bootstrap] }

const producer = new Producer({
  ...shared,
  idempotent: true,
  transactionalId,
  // Without these, it asks for the producer id 0, which is fenced by its own former life.
  producerId: -1n,
  producerEpoch: -1,
  acks: ProduceAcks.ALL,
  serializers: stringSerializers
})
const consumer = new Consumer({
  ...shared,
  groupId,
  autocommit: false,
  sessionTimeout: 6000,
  heartbeatInterval: 500,
  deserializers: stringDeserializers
})
const stream = await consumer.consume({
  topics: [source],
  mode: MessagesStreamModes.COMMITTED,
  fallbackMode: 'earliest',
  isolationLevel: 1,
  maxWaitTime: 100
})

for await (const message of stream) {
  const transaction = await producer.beginTransaction()
  await transaction.addConsumer(consumer)
  await transaction.send({ messages: [{ topic: target, key: message.key, value: message.value }] })
  await transaction.addOffset(message)
  await transaction.commit()
}
