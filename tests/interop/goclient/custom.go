package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
)

// customResources defines a kind, finds it by discovery, follows its objects with a dynamic informer, and removes
// the definition with them.
func customResources(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets.example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "kind": "Gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{"type": "object", "properties": map[string]any{
							"level": map[string]any{"type": "integer", "maximum": int64(9), "default": int64(1)}}},
						"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					}}},
			}},
		}}}
	if _, err := definitions.Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the definition: %w", err)
	}

	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"})
	if err != nil {
		return fmt.Errorf("discover the kind: %w", err)
	}
	gadgets := client.Resource(mapping.Resource).Namespace("default")

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(mapping.Resource).Informer()
	events := make(chan string, 16)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { events <- "add " + o.(*unstructured.Unstructured).GetName() },
		DeleteFunc: func(o any) { events <- "delete" },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the informer does not sync")
	}

	gadget := func(level any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Gadget",
			"metadata": map[string]any{"name": "g"}, "spec": map[string]any{"level": level}}}
	}
	if _, err := gadgets.Create(ctx, gadget(int64(10)), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a gadget of level 10 was not refused as invalid: %v", err)
	}
	made, err := gadgets.Create(ctx, gadget(int64(5)), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Object["status"] = map[string]any{"seen": map[string]any{"by": "us"}}
	if made, err = gadgets.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	if by, _, _ := unstructured.NestedString(made.Object, "status", "seen", "by"); by != "us" {
		return fmt.Errorf("the status was not kept: %v", made.Object)
	}
	if event := <-events; event != "add g" {
		return fmt.Errorf("the informer said %q", event)
	}
	if err := definitions.Delete(ctx, "gadgets.example.org", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if event := <-events; event != "delete" {
		return fmt.Errorf("the informer said %q", event)
	}
	return eventually(ctx, "the definition goes", func(ctx context.Context) (bool, error) {
		_, err := definitions.Get(ctx, "gadgets.example.org", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
