package etcdtest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// In a test, cluster := etcdtest.Start(t) and client := cluster.Client(t) do the same, and clean up
// by themselves.
func Example() {
	cluster, err := etcdtest.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	client, err := etcdtest.NewClient(cluster.Endpoints()...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, "greeting", "hello"); err != nil {
		log.Fatal(err)
	}
	if err := cluster.Restart(); err != nil {
		log.Fatal(err)
	}
	resp, err := client.Get(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", resp.Kvs[0].Value)
	// Output: hello
}

// A network that goes silent and comes back.
func ExampleProxy() {
	cluster, err := etcdtest.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	proxy, err := etcdtest.RunProxy(cluster.Endpoints()[0])
	if err != nil {
		log.Fatal(err)
	}
	defer proxy.Close()
	client, err := etcdtest.NewClient(proxy.Endpoint())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	put := func(key string, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := client.Put(ctx, key, "v")
		return err
	}
	fmt.Println("before:", put("a", 10*time.Second))
	proxy.Pause()
	fmt.Println("paused:", put("b", 200*time.Millisecond))
	proxy.Heal()
	fmt.Println("healed:", put("c", 10*time.Second))
	// Output:
	// before: <nil>
	// paused: context deadline exceeded
	// healed: <nil>
}
