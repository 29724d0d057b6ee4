// client-go as controllers use it, against one API server: shared informers in JSON and in protobuf, a leader
// election, server-side apply, and the controller that DRA drivers publish their slices with.
//
// usage: goclient KUBECONFIG    prints a line per part; exits non-zero if one fails
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const patience = 20 * time.Second

// eventually polls until the condition holds; the check is local or cheap.
func eventually(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, condition)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// sharedInformers follows a config map through its life and checks that no event is missed or duplicated.
func sharedInformers(ctx context.Context, config *rest.Config, format string) error {
	config = rest.CopyConfig(config)
	config.ContentType = format
	config.AcceptContentTypes = format
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	events := make(chan string, 64)
	name := "informed-" + map[bool]string{true: "json", false: "protobuf"}[format == "application/json"]
	tell := func(kind string, object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if c := object.(*corev1.ConfigMap); c.Name == name {
			events <- kind + " " + c.Data["step"]
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell("add", o) },
		UpdateFunc: func(_, o any) { tell("update", o) },
		DeleteFunc: func(o any) { tell("delete", o) },
	}); err != nil {
		return err
	}
	// The other kinds only have to be listed and watched without an error.
	others := []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer(),
		factory.Resource().V1().ResourceClaims().Informer(), factory.Resource().V1().ResourceSlices().Informer(),
		factory.Resource().V1().DeviceClasses().Informer(), factory.Resource().V1beta1().ResourceSlices().Informer(),
		factory.Storage().V1().CSINodes().Informer(), factory.Policy().V1().PodDisruptionBudgets().Informer(),
		factory.Apps().V1().ReplicaSets().Informer(), factory.Core().V1().Services().Informer(),
	}
	factory.Start(ctx.Done())
	synced, cancelSync := context.WithTimeout(ctx, patience)
	defer cancelSync()
	for _, each := range append(others, informer) {
		if !cache.WaitForCacheSync(synced.Done(), each.HasSynced) {
			return fmt.Errorf("an informer did not sync in %s", format)
		}
	}
	maps := client.CoreV1().ConfigMaps("default")
	object, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"step": "1"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	object.Data["step"] = "2"
	if _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of an old version: %v", err)
	}
	if err = maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, want := range []string{"add 1", "update 2", "delete 2"} {
		select {
		case got := <-events:
			if got != want {
				return fmt.Errorf("event %q, want %q", got, want)
			}
		case <-time.After(patience):
			return fmt.Errorf("no event %q", want)
		}
	}
	return nil
}

// leaderElection lets the second candidate lead once the first releases the lease.
func leaderElection(ctx context.Context, client kubernetes.Interface) error {
	led := make(chan string, 4)
	candidate := func(ctx context.Context, id string) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "interop"},
				Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: id}},
			ReleaseOnCancel: true, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led <- id }, OnStoppedLeading: func() {}},
		})
	}
	first, stopFirst := context.WithCancel(ctx)
	go candidate(first, "one")
	if id := <-led; id != "one" {
		return fmt.Errorf("%s leads", id)
	}
	second, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	go candidate(second, "two")
	stopFirst()
	select {
	case id := <-led:
		if id != "two" {
			return fmt.Errorf("%s leads", id)
		}
	case <-time.After(patience):
		return fmt.Errorf("the second candidate never led")
	}
	return nil
}

// serverSideApply owns a field, gets a conflict, forces it, and releases a field.
func serverSideApply(ctx context.Context, client kubernetes.Interface) error {
	maps := client.CoreV1().ConfigMaps("default")
	wanted := func(data map[string]string) *applycore.ConfigMapApplyConfiguration {
		return applycore.ConfigMap("applied", "default").WithData(data)
	}
	if _, err := maps.Apply(ctx, wanted(map[string]string{"a": "1", "b": "1"}), metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	other := wanted(map[string]string{"a": "2"})
	if _, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a conflict was expected: %v", err)
	}
	if _, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two", Force: true}); err != nil {
		return err
	}
	result, err := maps.Apply(ctx, wanted(nil), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	if _, there := result.Data["b"]; there || result.Data["a"] != "2" {
		return fmt.Errorf("what nobody applies any more should go, the other's stay: %v", result.Data)
	}
	extracted, err := applycore.ExtractConfigMap(result, "two")
	if err != nil || extracted.Data["a"] != "2" {
		return fmt.Errorf("fields of two: %v %v", extracted, err)
	}
	return maps.Delete(ctx, "applied", metav1.DeleteOptions{})
}

// sliceController publishes, changes and withdraws a pool as Go drivers do.
func sliceController(ctx context.Context, client kubernetes.Interface) error {
	const driver = "go.interop.example.com"
	pool := func(names ...string) *resourceslice.DriverResources {
		devices := []resourceapi.Device{}
		for _, name := range names {
			model := "longship"
			devices = append(devices, resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"model": {StringValue: &model}}})
		}
		return &resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{"shared": {AllNodes: true,
			Slices: []resourceslice.Slice{{Devices: devices}}}}}
	}
	controller, err := resourceslice.StartController(ctx, resourceslice.Options{DriverName: driver, KubeClient: client, Resources: pool("a", "b"),
		ErrorHandler: func(_ context.Context, err error, message string) { fmt.Fprintln(os.Stderr, message, err) }})
	if err != nil {
		return err
	}
	defer controller.Stop()
	published := func(want int) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorDriver + "=" + driver})
			if err != nil {
				return false, err
			}
			devices := 0
			for _, slice := range list.Items {
				devices += len(slice.Spec.Devices)
			}
			return devices == want, nil
		}
	}
	if err := eventually(ctx, "two devices are published", published(2)); err != nil {
		return err
	}
	controller.Update(pool("a", "b", "c"))
	if err := eventually(ctx, "a third device is published", published(3)); err != nil {
		return err
	}
	controller.Update(&resourceslice.DriverResources{})
	return eventually(ctx, "the slices are gone", published(0))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config.QPS, config.Burst = 200, 400
	client := kubernetes.NewForConfigOrDie(config)
	failed := false
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"informers in JSON", func() error { return sharedInformers(ctx, config, "application/json") }},
		{"informers in protobuf", func() error { return sharedInformers(ctx, config, "application/vnd.kubernetes.protobuf") }},
		{"leader election", func() error { return leaderElection(ctx, client) }},
		{"server-side apply", func() error { return serverSideApply(ctx, client) }},
		{"slice controller", func() error { return sliceController(ctx, client) }},
		{"custom resources", func() error { return customResources(ctx, config) }},
	} {
		if err := part.run(); err != nil {
			failed = true
			fmt.Printf("FAIL %s: %v\n", part.name, err)
		} else {
			fmt.Printf("ok   %s\n", part.name)
		}
	}
	if failed {
		os.Exit(1)
	}
}
