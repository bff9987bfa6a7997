// Copies a topic to another with one of Go's clients: client LIBRARY BOOTSTRAP GROUP ID SOURCE TARGET.
// franz-go and sarama copy in transactions, with the offsets of a group; kafka-go has none, and
// commits what it has written.
package main

import (
	"context"
	"log"
	"os"
)

type job struct{ bootstrap, group, id, source, target string }

func main() {
	copiers := map[string]func(context.Context, job) error{
		"franz-go": copyWithFranz,
		"sarama":   copyWithSarama,
		"kafka-go": copyWithSegmentio,
	}
	arguments := os.Args[2:]
	work := job{arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]}
	log.Fatal(copiers[os.Args[1]](context.Background(), work))
}
