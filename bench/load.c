/* The benchmark's load, on librdkafka: one program, so that the client costs little and the same everywhere.
 *
 *   load produce BOOTSTRAP TOPIC PARTITIONS CLIENTS RECORDS SIZE [name=value ...]
 *   load consume BOOTSTRAP TOPIC PARTITIONS CLIENTS RECORDS [name=value ...]
 *   load latency BOOTSTRAP TOPIC RATE SECONDS SIZE [name=value ...]
 *
 * Time is from the first produce call to the last acknowledgement, or from the first record received to
 * the last. Each prints one JSON object and exits 0, or a reason on stderr and 1. RECORDS is per client; every
 * client is a librdkafka handle (and connection) of its own. Trailing settings are librdkafka's.
 */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *bootstrap, *topic;
static char **settings;
static int settings_count;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail(name, why);
}

static rd_kafka_t *open_client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char why[256];
    set(conf, "bootstrap.servers", bootstrap);
    for (int i = 0; i < settings_count; i++) {
        char *equals = strchr(settings[i], '=');
        char name[128];
        if (!equals || equals - settings[i] >= (long)sizeof name) fail(settings[i], "not name=value");
        memcpy(name, settings[i], equals - settings[i]);
        name[equals - settings[i]] = 0;
        set(conf, name, equals + 1);
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (!client) fail("rd_kafka_new", why);
    return client;
}

static int by_value(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double percentile_ms(int64_t *sorted, long count, double share) {
    long index = (long)(share * (count - 1));
    return sorted[index] / 1e6;
}

/* ---- produce and consume: one thread per client ---- */

typedef struct {
    rd_kafka_t *client;
    long records, acknowledged;
    int64_t first_ns;
    int partitions, size, number;
} worker_t;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    worker_t *worker = opaque;
    (void)client;
    if (message->err) fail("delivery", rd_kafka_err2str(message->err));
    worker->acknowledged++;
}

static void *produce(void *argument) {
    worker_t *worker = argument;
    char *value = malloc(worker->size);
    memset(value, 'x', worker->size);
    rd_kafka_topic_t *handle = rd_kafka_topic_new(worker->client, topic, NULL);
    /* As a sticky partitioner does: about one 16 KB batch goes to a partition before the next. */
    long stretch = worker->partitions > 64 ? 1 : 16384 / (worker->size + 10) + 1;
    for (long i = 0; i < worker->records; i++) {
        int partition = (i / stretch + worker->number) % worker->partitions;
        while (rd_kafka_produce(handle, partition, RD_KAFKA_MSG_F_COPY, value, worker->size, NULL, 0,
                                NULL) == -1) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
                fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
            rd_kafka_poll(worker->client, 5);
        }
        if (i % 128 == 0) rd_kafka_poll(worker->client, 0);
    }
    while (worker->acknowledged < worker->records) rd_kafka_poll(worker->client, 100);
    rd_kafka_topic_destroy(handle);
    free(value);
    return NULL;
}

static void *consume(void *argument) {
    worker_t *worker = argument;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(worker->client);
    rd_kafka_message_t *messages[10000];
    while (worker->acknowledged < worker->records) {
        ssize_t count = rd_kafka_consume_batch_queue(queue, 1000, messages, 10000);
        if (count > 0 && !worker->first_ns) worker->first_ns = now_ns();
        for (ssize_t i = 0; i < count; i++) {
            if (messages[i]->err && messages[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
                fail("consume", rd_kafka_message_errstr(messages[i]));
            worker->acknowledged += !messages[i]->err;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    rd_kafka_queue_destroy(queue);
    return NULL;
}

static rd_kafka_t *open_reader(int partitions, int64_t offset) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", "not-used");
    set(conf, "enable.auto.commit", "false");
    rd_kafka_t *client = open_client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int partition = 0; partition < partitions; partition++)
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
    rd_kafka_resp_err_t error = rd_kafka_assign(client, list);
    if (error) fail("assign", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(list);
    return client;
}

/* A connection that has been used: clients connect before the clock starts. */
static void connect_now(rd_kafka_t *client) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, handle, &metadata, 30000);
    if (error) fail("metadata", rd_kafka_err2str(error));
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
}

static void run_workers(int producing, int partitions, int clients, long records, int size) {
    worker_t *workers = calloc(clients, sizeof *workers);
    pthread_t *threads = calloc(clients, sizeof *threads);
    for (int i = 0; i < clients; i++) {
        workers[i] = (worker_t){.records = records, .partitions = partitions, .size = size, .number = i};
        if (producing) {
            rd_kafka_conf_t *conf = rd_kafka_conf_new();
            rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
            rd_kafka_conf_set_opaque(conf, &workers[i]);
            workers[i].client = open_client(RD_KAFKA_PRODUCER, conf);
            connect_now(workers[i].client);
        }
    }
    int64_t start = now_ns();
    for (int i = 0; i < clients; i++) {
        if (!producing) workers[i].client = open_reader(partitions, RD_KAFKA_OFFSET_BEGINNING);
        pthread_create(&threads[i], NULL, producing ? produce : consume, &workers[i]);
    }
    for (int i = 0; i < clients; i++) pthread_join(threads[i], NULL);
    int64_t end = now_ns();
    if (!producing) {
        /* librdkafka waits half a second of its own before it asks for offsets: not the broker's time. */
        start = end;
        for (int i = 0; i < clients; i++)
            if (workers[i].first_ns < start) start = workers[i].first_ns;
    }
    double seconds = (end - start) / 1e9;
    printf("{\"records\": %ld, \"seconds\": %.6f}\n", records * clients, seconds);
    fflush(stdout);
    /* The result is out; tearing handles down politely would only cost broker CPU after the fact. */
    _Exit(0);
}

/* ---- latency: a paced producer, and a consumer that reads what it wrote ---- */

static long latency_count;
static volatile long acknowledged, received;
static volatile int reader_is_warm;
static int64_t *ack_ns, *receive_ns;

/* A record begins with the time it was due; zero marks one sent to warm the path, not to be measured. */
static int64_t due_ns(const rd_kafka_message_t *message) {
    int64_t due;
    memcpy(&due, message->payload, sizeof due);
    return due;
}

static void on_latency_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) fail("delivery", rd_kafka_err2str(message->err));
    int64_t due = due_ns(message);
    if (due) ack_ns[acknowledged++] = now_ns() - due;
}

static void *receive_all(void *argument) {
    rd_kafka_t *client = argument;
    while (received < latency_count) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 1000);
        if (!message) continue;
        if (message->err) fail("consume", rd_kafka_message_errstr(message));
        int64_t due = due_ns(message);
        if (due) receive_ns[received++] = now_ns() - due;
        else reader_is_warm = 1;
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static void *serve_reports(void *argument) {
    while (acknowledged < latency_count) rd_kafka_poll(argument, 100);
    return NULL;
}

static void measure_latency(long rate, double seconds, int size) {
    latency_count = (long)(rate * seconds);
    ack_ns = calloc(latency_count, sizeof *ack_ns);
    receive_ns = calloc(latency_count, sizeof *receive_ns);
    char *value = calloc(1, size);
    int producer_settings = settings_count;
    settings_count = 0; /* the settings given are the producer's */
    rd_kafka_t *reader = open_reader(1, RD_KAFKA_OFFSET_BEGINNING);
    settings_count = producer_settings;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, on_latency_delivery);
    rd_kafka_t *producer = open_client(RD_KAFKA_PRODUCER, conf);
    connect_now(producer);
    rd_kafka_topic_t *handle = rd_kafka_topic_new(producer, topic, NULL);
    pthread_t receiver, server;
    pthread_create(&receiver, NULL, receive_all, reader);
    pthread_create(&server, NULL, serve_reports, producer);
    int64_t gap = 1000000000 / rate, start = now_ns();
    /* Until the reader has received something, and half a second more, records only warm the path. */
    long first = -1;
    for (long i = 0; first < 0 || i < first + latency_count; i++) {
        int64_t due = start + i * gap;
        struct timespec until = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        if (first < 0 && reader_is_warm) first = i + rate / 2;
        if (first < 0 && i > 20 * rate) fail("consume", "nothing was received within 20 s");
        /* From the moment it was due: a stall must not hide the records that waited behind it. */
        memcpy(value, first >= 0 && i >= first ? &due : &(int64_t){0}, sizeof due);
        if (rd_kafka_produce(handle, 0, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, NULL) == -1)
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
    }
    pthread_join(server, NULL);
    pthread_join(receiver, NULL);
    qsort(ack_ns, latency_count, sizeof *ack_ns, by_value);
    qsort(receive_ns, latency_count, sizeof *receive_ns, by_value);
    printf("{\"records\": %ld, \"seconds\": %.6f, \"ack_p50_ms\": %.3f, \"ack_p99_ms\": %.3f, "
           "\"receive_p50_ms\": %.3f, \"receive_p99_ms\": %.3f}\n",
           latency_count, (now_ns() - start) / 1e9, percentile_ms(ack_ns, latency_count, 0.5),
           percentile_ms(ack_ns, latency_count, 0.99), percentile_ms(receive_ns, latency_count, 0.5),
           percentile_ms(receive_ns, latency_count, 0.99));
    fflush(stdout);
    _Exit(0);
}

int main(int count, char **words) {
    if (count < 4) fail("usage", "load produce|consume|latency BOOTSTRAP TOPIC ...");
    const char *mode = words[1];
    int positional = !strcmp(mode, "produce") ? 8 : 7;
    if (count < positional) fail("usage", "too few arguments");
    bootstrap = words[2];
    topic = words[3];
    settings = words + positional;
    settings_count = count - positional;
    if (!strcmp(mode, "produce"))
        run_workers(1, atoi(words[4]), atoi(words[5]), atol(words[6]), atoi(words[7]));
    else if (!strcmp(mode, "consume"))
        run_workers(0, atoi(words[4]), atoi(words[5]), atol(words[6]), 0);
    else if (!strcmp(mode, "latency"))
        measure_latency(atol(words[4]), atof(words[5]), atoi(words[6]));
    fail("usage", "unknown mode");
}
