// gometrics scrapes a node as metrics-server does, with its own code, and prints what
// `kubectl top` would show.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/metrics-server/pkg/scraper/client"
	"sigs.k8s.io/metrics-server/pkg/scraper/client/resource"
	"sigs.k8s.io/metrics-server/pkg/storage"
)

type usage struct {
	MilliCPU int64 `json:"milliCPU"`
	Memory   int64 `json:"memory"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	ctx := context.Background()
	api, err := kubernetes.NewForConfig(config)
	check(err)
	node, err := api.CoreV1().Nodes().Get(ctx, os.Args[2], metav1.GetOptions{})
	check(err)
	kubelet, err := resource.NewForConfig(&client.KubeletClientConfig{
		Client:              *config,
		AddressTypePriority: []corev1.NodeAddressType{corev1.NodeInternalIP},
		Scheme:              "https",
		DefaultPort:         10250,
		UseNodeStatusPort:   true,
	})
	check(err)
	store := storage.NewStorage(5 * time.Second)
	for i := 0; i < 2; i++ {
		if i > 0 {
			time.Sleep(5 * time.Second)
		}
		batch, err := kubelet.GetMetrics(ctx, node)
		check(err)
		store.Store(batch)
	}
	result := map[string]usage{}
	nodes, err := store.GetNodeMetrics(node)
	check(err)
	for _, each := range nodes {
		result["node "+each.Name] = usage{each.Usage.Cpu().MilliValue(), each.Usage.Memory().Value()}
	}
	pods, err := api.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	check(err)
	for _, pod := range pods.Items {
		metrics, err := store.GetPodMetrics(&metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
		check(err)
		for _, each := range metrics {
			for _, container := range each.Containers {
				result[each.Name+"/"+container.Name] = usage{
					container.Usage.Cpu().MilliValue(), container.Usage.Memory().Value()}
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
}
