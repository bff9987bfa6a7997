// A child that logs in with kafkajs, produces, reads in a group and administers, and prints what came of it.
//
// Run with NODE_PATH naming the packages, as `node secured.js BOOTSTRAP`, with {mechanism, username, password,
// token, topic, count} as JSON on stdin.
const { readFileSync } = require('fs')
const { Kafka, logLevel } = require('kafkajs')

const { mechanism, username, password, token, topic, count } = JSON.parse(readFileSync(0))
const sasl =
  mechanism === 'oauthbearer'
    ? { mechanism, oauthBearerProvider: async () => ({ value: token }) }
    : { mechanism, username, password }
const kafka = new Kafka({
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { retries: 3 },
  connectionTimeout: 30000,
  sasl,
})

async function run() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] })
  const listed = (await admin.listTopics()).includes(topic)
  await admin.disconnect()

  const producer = kafka.producer()
  await producer.connect()
  const messages = Array.from({ length: count }, (_, number) => ({ value: String(number) }))
  await producer.send({ topic, messages })
  await producer.disconnect()

  const consumer = kafka.consumer({ groupId: topic })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const values = []
  await new Promise(resolve => {
    consumer.run({
      eachMessage: async ({ message }) => {
        values.push(message.value.toString())
        if (values.length === count) resolve()
      },
    })
  })
  await consumer.disconnect()
  return { listed, values }
}

run()
  .catch(error => ({ error: (error.cause || error).name, message: error.message }))
  .then(answer => {
    console.log(JSON.stringify(answer))
    process.exit(0)
  })
