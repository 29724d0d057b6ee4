// A container runtime that runs nothing, with Kubernetes' own fake services: enough for a kubelet to start, register
// and keep its certificates. usage: cri SOCKET
package main

import (
	"fmt"
	"os"

	"k8s.io/cri-client/pkg/fake"
)

func main() {
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}
