// gonri is either side of NRI in containerd's own code: `plugin` registers with a runtime's socket and prints
// the events it gets; `runtime` serves a socket, waits for a plugin and notifies it about one sandbox.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

type plugin struct{}

// The container of the pod "other".
var other string

func (plugin) Configure(_ context.Context, _, runtime, version string) (stub.EventMask, error) {
	fmt.Println("configured by", runtime, version)
	return 0, nil
}

func (plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, _ []*api.Container) ([]*api.ContainerUpdate, error) {
	fmt.Println("synchronized with", len(pods), "pods")
	return nil, nil
}

func (plugin) RunPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	fmt.Println("run", pod.GetNamespace()+"/"+pod.GetName(), pod.GetUid(), "in", pod.GetLinux().GetCgroupParent())
	if pod.GetName() == "refused" {
		return fmt.Errorf("gonri refuses this pod")
	}
	return nil
}

func (plugin) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	fmt.Println("stop", pod.GetNamespace()+"/"+pod.GetName())
	return nil
}

func (plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	fmt.Println("create", pod.GetName()+"/"+c.GetName(), c.GetId(), c.GetArgs())
	adjust := &api.ContainerAdjustment{}
	switch pod.GetName() {
	case "changed":
		adjust.AddEnv("FROM_NRI", "yes")
		adjust.RemoveEnv("UNWANTED")
		adjust.AddMount(&api.Mount{Source: "/usr", Destination: "/from-nri", Type: "bind", Options: []string{"rbind", "ro"}})
		adjust.AddAnnotation("gonri", "was here")
	case "limited":
		adjust.SetLinuxCPUSetCPUs("0")
		adjust.AddRlimit("RLIMIT_NOFILE", 77, 77)
		adjust.AddDevice(&api.LinuxDevice{Path: "/dev/from-nri", Type: "c", Major: 1, Minor: 3})
		adjust.AddHooks(&api.Hooks{Poststop: []*api.Hook{{Path: "/bin/touch", Args: []string{"touch", os.Getenv("GONRI_MARK")}}}})
		score := 500
		adjust.SetLinuxOomScoreAdj(&score)
		// Everybody else moves.
		update := &api.ContainerUpdate{ContainerId: other}
		update.SetLinuxCPUSetCPUs("0")
		return adjust, []*api.ContainerUpdate{update}, nil
	case "prioritized":
		adjust.SetLinuxIOPriority(&api.LinuxIOPriority{Priority: 3})
	case "other":
		other = c.GetId()
	case "rejected":
		adjust.SetLinuxMemoryLimit(12 << 20)
	}
	return adjust, nil, nil
}

func (plugin) ValidateContainerAdjustment(_ context.Context, req *api.ValidateContainerAdjustmentRequest) error {
	owner, _ := req.GetOwners().MemLimitOwner(req.GetContainer().GetId())
	if owner != "" {
		return fmt.Errorf("gonri allows no memory limit of %s", owner)
	}
	return nil
}

func (plugin) StartContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) error {
	fmt.Println("start", pod.GetName()+"/"+c.GetName(), c.GetId())
	return nil
}

func (plugin) StopContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	fmt.Println("end", pod.GetName()+"/"+c.GetName(), c.GetId())
	return nil, nil
}

func (plugin) RemoveContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) error {
	fmt.Println("remove", pod.GetName()+"/"+c.GetName(), c.GetId())
	return nil
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func runPlugin(socket string) {
	s, err := stub.New(plugin{}, stub.WithPluginName("gonri"), stub.WithPluginIdx("10"), stub.WithSocketPath(socket))
	if err != nil {
		fatal(err)
	}
	if err := s.Run(context.Background()); err != nil {
		fatal(err)
	}
}

func runRuntime(socket, podUID string) {
	synchronized := make(chan struct{}, 1)
	sync := func(ctx context.Context, cb adaptation.SyncCB) error {
		_, err := cb(ctx, []*api.PodSandbox{{Id: "old", Name: "old"}}, nil)
		if err == nil {
			synchronized <- struct{}{}
		}
		return err
	}
	update := func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, nil
	}
	runtime, err := adaptation.New("gonri", "1.0", sync, update, adaptation.WithSocketPath(socket),
		adaptation.WithPluginPath("/nowhere"), adaptation.WithPluginConfigPath("/nowhere"))
	if err != nil {
		fatal(err)
	}
	if err := runtime.Start(); err != nil {
		fatal(err)
	}
	fmt.Println("serving")
	select {
	case <-synchronized:
	case <-time.After(20 * time.Second):
		fatal(fmt.Errorf("no plugin came"))
	}
	// A plugin is listed once it has responded; one built with a sanitizer takes a while.
	time.Sleep(2 * time.Second)
	err = runtime.RunPodSandbox(context.Background(), &adaptation.StateChangeEvent{
		Pod: &api.PodSandbox{Id: "s1", Name: "pod", Namespace: "default", Uid: podUID, Ips: []string{"192.0.2.7"}}})
	if err != nil {
		fatal(err)
	}
	fmt.Println("done")
	runtime.Stop()
}

func main() {
	if os.Args[1] == "plugin" {
		runPlugin(os.Args[2])
	} else {
		runRuntime(os.Args[2], os.Args[3])
	}
}
