//! rskafka: copy a topic to another, partition by partition. It has neither groups nor
//! transactions: as many records as a target's partition has are already copied.

use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::ClientBuilder;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (bootstrap, source, target) = (&arguments[0], &arguments[1], &arguments[2]);
    let client = ClientBuilder::new(vec![bootstrap.clone()]).build().await?;
    let topics = client.list_topics().await?;
    let topic = topics.iter().find(|topic| topic.name == *source).ok_or("no such topic")?;
    let mut pairs = Vec::new();
    for partition in topic.partitions.clone() {
        let handling = UnknownTopicHandling::Retry;
        let from = client.partition_client(source.clone(), partition, handling).await?;
        let to = client.partition_client(target.clone(), partition, handling).await?;
        let copied = to.get_offset(OffsetAt::Latest).await?;
        pairs.push((from, to, copied));
    }
    loop {
        for (from, to, copied) in &mut pairs {
            let (records, _) = from.fetch_records(*copied, 1..2_000, 50).await?;
            for (number, each) in records.into_iter().enumerate() {
                let codec = [Compression::NoCompression, Compression::Gzip, Compression::Snappy];
                let offsets = to.produce(vec![each.record], codec[number % 3]).await?;
                assert_eq!(offsets, vec![*copied]);
                *copied += 1;
            }
        }
    }
}
