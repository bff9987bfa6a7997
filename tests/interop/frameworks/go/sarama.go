package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

type transfer struct {
	work   job
	config *sarama.Config
}

func (*transfer) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*transfer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// One producer for each partition: transactions of several partitions would have to take turns.
func (t *transfer) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	config := *t.config
	config.Producer.Transaction.ID = t.work.id + "-" + string(rune('0'+claim.Partition()))
	producer, err := sarama.NewAsyncProducer([]string{t.work.bootstrap}, &config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for message := range claim.Messages() {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		producer.Input() <- &sarama.ProducerMessage{
			Topic: t.work.target,
			Key:   sarama.ByteEncoder(message.Key),
			Value: sarama.ByteEncoder(message.Value),
		}
		if err := producer.AddMessageToTxn(message, t.work.group, nil); err != nil {
			return err
		}
		if err := producer.CommitTxn(); err != nil {
			return err
		}
		if session.Context().Err() != nil {
			return nil
		}
	}
	return nil
}

func copyWithSarama(ctx context.Context, work job) error {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Producer.Idempotent = true
	config.Producer.Transaction.Timeout = 10 * time.Second
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	group, err := sarama.NewConsumerGroup([]string{work.bootstrap}, work.group, config)
	if err != nil {
		return err
	}
	defer group.Close()
	for {
		err := group.Consume(ctx, []string{work.source}, &transfer{work: work, config: config})
		if errors.Is(err, sarama.ErrUnstableOffsetCommit) {
			// A killed process left a transaction open, which ends by its timeout.
			time.Sleep(100 * time.Millisecond)
		} else if err != nil {
			return err
		}
	}
}
