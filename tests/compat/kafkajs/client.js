// A child that does one act with kafkajs and prints what came of it as JSON.
//
// Run with NODE_PATH naming the packages, as `node client.js BOOTSTRAP ACT`, with the act's arguments as
// JSON on stdin. A broker's refusal is an answer too: {error: its type}. KAFKAJS_TLS names the files of a
// connection with TLS, as JSON: {ca, cert, key}.
const { readFileSync } = require('fs')
const { Kafka, CompressionCodecs, CompressionTypes, ConfigResourceTypes, logLevel } = require('kafkajs')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const [bootstrap, act] = process.argv.slice(2)
const files = JSON.parse(process.env.KAFKAJS_TLS || 'null')
const ssl = files && Object.fromEntries(Object.entries(files).map(([name, path]) => [name, readFileSync(path)]))
const kafka = new Kafka({
  brokers: [bootstrap],
  ...(ssl && { ssl }),
  logLevel: logLevel.NOTHING,
  retry: { retries: 3 },
  connectionTimeout: 30000, // of a machine that may be busy; it is 1000 by default
})

async function withClient(client, use) {
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}
const withAdmin = use => withClient(kafka.admin(), use)

async function describeConfigs(admin, topic) {
  const answer = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
  })
  const entries = answer.resources[0].configEntries
  return Object.fromEntries(entries.map(entry => [entry.configName, entry.configValue]))
}

const acts = {
  create: ({ topic, partitions = 1, configs = {} }) =>
    withAdmin(async admin => {
      const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
      const created = await admin.createTopics({
        topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }],
      })
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return {
        created,
        listed: (await admin.listTopics()).includes(topic),
        partitions: topics[0].partitions.map(partition => partition.partitionId).sort(),
        configs: await describeConfigs(admin, topic),
      }
    }),
  remove: ({ topic }) =>
    withAdmin(async admin => {
      await admin.deleteTopics({ topics: [topic] })
      return { listed: (await admin.listTopics()).includes(topic) }
    }),
  alterConfigs: ({ topic, configs }) =>
    withAdmin(async admin => {
      const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
      await admin.alterConfigs({
        resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
      })
      return await describeConfigs(admin, topic)
    }),
  createPartitions: ({ topic, count }) =>
    withAdmin(async admin => {
      await admin.createPartitions({ topicPartitions: [{ topic, count }] })
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return topics[0].partitions.length
    }),
  cluster: () => withAdmin(admin => admin.describeCluster()),
  offsets: ({ topic, timestamp }) =>
    withAdmin(async admin => ({
      all: await admin.fetchTopicOffsets(topic),
      forTime: await admin.fetchTopicOffsetsByTimestamp(topic, timestamp),
    })),
  deleteRecords: ({ topic, offset }) =>
    withAdmin(async admin => {
      await admin.fetchTopicOffsets(topic) // deleteTopicRecords expects metadata to be loaded
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset }] })
      return await admin.fetchTopicOffsets(topic)
    }),
  send: ({ topic, messages, compression = 'None', acks = -1, idempotent = false }) => {
    const producer = kafka.producer({ idempotent, allowAutoTopicCreation: false })
    return withClient(producer, producer =>
      producer.send({ topic, messages, acks, compression: CompressionTypes[compression] })
    )
  },
  sendSizes: ({ topic, sizes }) => {
    const producer = kafka.producer()
    return withClient(producer, async producer => {
      const offsets = []
      for (const size of sizes) {
        const messages = [{ partition: 0, value: Buffer.alloc(size, 'x') }]
        offsets.push((await producer.send({ topic, messages }))[0].baseOffset)
      }
      return offsets
    })
  },
  // Members read a topic together until they have seen `count` messages and committed what they saw,
  // and each has a share of the topic's partitions that is nobody else's; then they leave.
  group: async ({ topic, groupId, members, count }) => {
    const seen = new Map() // what a rebalance hands over uncommitted is seen twice
    const committed = {}
    const owned = {}
    const { topics } = await withAdmin(admin => admin.fetchTopicMetadata({ topics: [topic] }))
    const partitionCount = topics[0].partitions.length
    const consumers = Array.from({ length: members }, () =>
      kafka.consumer({ groupId, sessionTimeout: 15000, heartbeatInterval: 100, maxWaitTimeInMs: 50 })
    )
    let finish
    const done = new Promise(resolve => (finish = resolve))
    const check = () => {
      const shares = Object.values(owned)
      const all = shares.flat()
      const isShared =
        shares.length === members &&
        shares.every(share => share.length) &&
        all.length === partitionCount &&
        new Set(all).size === partitionCount
      const isCommitted = [...seen.values()].every(([partition, offset]) => committed[partition] > offset)
      if (seen.size >= count && isShared && isCommitted) finish()
    }
    await Promise.all(
      consumers.map(async (consumer, number) => {
        consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
          owned[number] = payload.memberAssignment[topic] || []
          check()
        })
        consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => {
          for (const { partition, offset } of payload.topics[0].partitions) committed[partition] = Number(offset)
          check()
        })
        await consumer.connect()
        await consumer.subscribe({ topics: [topic], fromBeginning: true })
        await consumer.run({
          eachMessage: async ({ partition, message }) => {
            const place = [partition, Number(message.offset)]
            seen.set(place.join(), place)
          },
        })
      })
    )
    await done
    await Promise.all(consumers.map(consumer => consumer.disconnect()))
    const offsets = await withAdmin(admin => admin.fetchOffsets({ groupId, topics: [topic] }))
    return { seen: [...seen.values()], owned: Object.values(owned), offsets: offsets[0].partitions }
  },
  transactions: ({ topic, transactionalId, steps }) => {
    const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })
    return withClient(producer, async producer => {
      for (const { values, commits } of steps) {
        const transaction = await producer.transaction()
        await transaction.send({ topic, messages: values.map(value => ({ partition: 0, value })) })
        await (commits ? transaction.commit() : transaction.abort())
      }
    })
  },
}

acts[act](JSON.parse(readFileSync(0)))
  .catch(error => {
    const cause = error.errors ? error.errors[0] : error
    const type = cause.type || (cause.cause && cause.cause.type)
    if (!type) throw error
    return { error: type }
  })
  .then(answer => console.log(JSON.stringify(answer === undefined ? null : answer)))
