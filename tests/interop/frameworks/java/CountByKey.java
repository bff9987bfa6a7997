import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams: a word count whose every step is an output. */
public class CountByKey {
  private static final String STORE = "seen";

  static class Count implements Processor<String, String, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, Long> seen;

    @Override
    public void init(ProcessorContext<String, String> context) {
      this.context = context;
      seen = context.getStateStore(STORE);
    }

    @Override
    public void process(Record<String, String> record) {
      Long before = seen.get(record.key());
      long now = before == null ? 1 : before + 1;
      seen.put(record.key(), now);
      String open = record.value().substring(0, record.value().length() - 1);
      context.forward(record.withValue(open + ", \"seen\": " + now + "}"));
    }
  }

  public static void main(String[] arguments) {
    Properties options = new Properties();
    options.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    options.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
    options.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(arguments[4]).toString());
    options.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    options.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, arguments[5]);
    options.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    options.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    options.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    if (arguments[5].equals("classic")) {
      options.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), "6000");
    }

    StreamsBuilder builder = new StreamsBuilder();
    builder.addStateStore(
        Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore(STORE), Serdes.String(), Serdes.Long()));
    builder.<String, String>stream(arguments[2])
        .selectKey((key, value) -> "word-" + key.substring(key.length() - 1))
        .repartition(Repartitioned.as("words"))
        .process(Count::new, STORE)
        .to(arguments[3]);
    KafkaStreams streams = new KafkaStreams(builder.build(), options);
    streams.setStateListener((state, before) -> System.out.println("state " + state));
    streams.start();
  }
}
