// Reads the server's protobuf and JSON with Kubernetes' own types: lists, single objects, watches,
// metadata, failures; and reads a slice in every version that client-go knows.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

func check(ok bool, format string, args ...any) {
	if !ok {
		fmt.Printf("FAILED: "+format+"\n", args...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	_, _, line, _ := runtime.Caller(1)
	check(err == nil, "line %d: %v", line, err)
	return value
}

func slice(name string) *resourcev1.ResourceSlice {
	node := "n"
	text := "A100"
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "d.example.com", NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: "p", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name:       "device-1",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &text}},
				Taints:     []resourcev1.DeviceTaint{{Key: "k", Effect: resourcev1.DeviceTaintEffectNoSchedule}},
			}},
		},
	}
}

func run(ctx context.Context, base *rest.Config, format string) {
	config := rest.CopyConfig(base)
	config.ContentType = format
	config.AcceptContentTypes = format
	client := kubernetes.NewForConfigOrDie(config)
	slices := client.ResourceV1().ResourceSlices()

	// Another client wrote the boolean form; a Go client must tolerate it.
	list := must(slices.List(ctx, metav1.ListOptions{}))
	check(len(list.Items) == 1 && list.ResourceVersion != "", "list of slices: %v", list.Items)
	got := list.Items[0].Spec.SkipNodeOperations
	check(len(got) == 1 && string(got[0]) == "*", "skipNodeOperations is %v", got)

	name := "made-" + map[string]string{protobuf: "protobuf", "application/json": "json"}[format]
	watch := must(slices.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true}))
	created := must(slices.Create(ctx, slice(name), metav1.CreateOptions{}))
	check(created.Spec.Devices[0].Taints[0].TimeAdded != nil, "the server sets the time of a taint")
	event := <-watch.ResultChan()
	seen, ok := event.Object.(*resourcev1.ResourceSlice)
	check(ok && event.Type == "ADDED" && seen.UID == created.UID, "watch: %v %v", event.Type, event.Object)
	patched := must(slices.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"c":"d"}}}`), metav1.PatchOptions{}))
	check(patched.Labels["c"] == "d" && *patched.Spec.Devices[0].Attributes["model"].StringValue == "A100", "patch: %v", patched)
	event = <-watch.ResultChan()
	check(event.Type == "MODIFIED", "watch: %v", event.Type)
	watch.Stop()

	// The same slice in the previous version, which nests devices differently.
	var older *resourcev1beta1.ResourceSlice = must(client.ResourceV1beta1().ResourceSlices().Get(ctx, name, metav1.GetOptions{}))
	check(older.Spec.Devices[0].Basic != nil && *older.Spec.Devices[0].Basic.Attributes["model"].StringValue == "A100", "v1beta1: %v", older.Spec)
	check(older.UID == created.UID, "v1beta1 is the same object")
	check(len(must(client.ResourceV1beta2().ResourceSlices().List(ctx, metav1.ListOptions{})).Items) == 2, "v1beta2")

	// Partial metadata, as garbage collectors and quota controllers read.
	meta := metadata.NewForConfigOrDie(config)
	gvr := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	partial := must(meta.Resource(gvr).List(ctx, metav1.ListOptions{}))
	check(len(partial.Items) == 2 && partial.Items[1].Name != "", "metadata: %v", partial.Items)

	_, err := slices.Get(ctx, "none", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "a failure is a Status: %v", err)
	_, err = slices.Create(ctx, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{})
	check(apierrors.IsInvalid(err) && len(err.(*apierrors.StatusError).ErrStatus.Details.Causes) > 2, "all errors at once: %v", err)

	// An informer over both: list, watch, relist.
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Resource().V1().ResourceSlices().Informer()
	factory.Start(ctx.Done())
	check(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "the informer does not sync")
	check(len(informer.GetStore().List()) == 2, "informer: %v", informer.GetStore().ListKeys())
	check(slices.Delete(ctx, name, metav1.DeleteOptions{}) == nil, "delete")
	for deadline := time.Now().Add(10 * time.Second); len(informer.GetStore().List()) != 1; time.Sleep(10 * time.Millisecond) {
		check(time.Now().Before(deadline), "the informer misses the deletion")
	}

	// Both APIs for events show the same objects.
	must(client.CoreV1().Events("default").Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: "Reason", Message: "text", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "default"}}, metav1.CreateOptions{}))
	newer := must(client.EventsV1().Events("default").Get(ctx, name, metav1.GetOptions{}))
	check(newer.Note == "text" && newer.Regarding.Name == "p", "events.k8s.io: %v", newer)

	resources := must(client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1beta1"))
	check(len(resources.APIResources) > 0, "discovery")
	fmt.Println("ok", format)
}

func main() {
	config := must(clientcmd.BuildConfigFromFlags("", os.Args[1]))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run(ctx, config, protobuf)
	run(ctx, config, "application/json")
}
