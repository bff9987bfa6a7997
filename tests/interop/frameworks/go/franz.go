package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func copyWithFranz(ctx context.Context, work job) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(work.bootstrap),
		kgo.ConsumerGroup(work.group),
		kgo.TransactionalID(work.id),
		kgo.ConsumeTopics(work.source),
		kgo.DefaultProduceTopic(work.target),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second),
		kgo.RequireStableFetchOffsets(),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for {
		fetches := session.PollRecords(ctx, 20)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(ctx, &kgo.Record{Key: record.Key, Value: record.Value}, nil)
		})
		if _, err := session.End(ctx, kgo.TryCommit); err != nil {
			return err
		}
	}
}
