package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
)

func copyWithSegmentio(ctx context.Context, work job) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        []string{work.bootstrap},
		GroupID:        work.group,
		Topic:          work.source,
		StartOffset:    kafka.FirstOffset,
		SessionTimeout: 6 * time.Second,
		MaxWait:        100 * time.Millisecond,
	})
	defer reader.Close()
	writer := &kafka.Writer{
		Addr:         kafka.TCP(work.bootstrap),
		Topic:        work.target,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
	}
	defer writer.Close()
	for {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return err
		}
		copied := kafka.Message{Key: message.Key, Value: message.Value}
		if err := writer.WriteMessages(ctx, copied); err != nil {
			return err
		}
		if err := reader.CommitMessages(ctx, message); err != nil {
			return err
		}
	}
}
