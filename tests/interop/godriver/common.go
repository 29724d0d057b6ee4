package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A driver of plain gRPC that serves both APIs on its registration socket and names no endpoint. It has no
// health and publishes no slices.
type oneSocket struct {
	registerapi.UnimplementedRegistrationServer
	drapb.UnimplementedDRAPluginServer
	driver *driver
	client kubernetes.Interface
}

func (o *oneSocket) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.DRAPlugin, Name: o.driver.name,
		SupportedVersions: []string{drapb.DRAPluginService}}, nil
}

func (o *oneSocket) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		return nil, errors.New(status.Error)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

func (o *oneSocket) NodePrepareResources(ctx context.Context, request *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	response := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, each := range request.Claims {
		claim, err := o.client.ResourceV1().ResourceClaims(each.Namespace).Get(ctx, each.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		results, err := o.driver.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			return nil, err
		}
		result, answer := results[claim.UID], &drapb.NodePrepareResourceResponse{}
		if result.Err != nil {
			answer.Error = result.Err.Error()
		}
		for _, device := range result.Devices {
			answer.Devices = append(answer.Devices, &drapb.Device{RequestNames: device.Requests,
				PoolName: device.PoolName, DeviceName: device.DeviceName, CdiDeviceIds: device.CDIDeviceIDs})
		}
		response.Claims[each.Uid] = answer
	}
	return response, nil
}

func (o *oneSocket) NodeUnprepareResources(ctx context.Context, request *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	response := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
	for _, each := range request.Claims {
		results, err := o.driver.UnprepareResourceClaims(ctx, []kubeletplugin.NamespacedObject{{UID: types.UID(each.Uid)}})
		if err != nil {
			return nil, err
		}
		answer := &drapb.NodeUnprepareResourceResponse{}
		if err := results[types.UID(each.Uid)]; err != nil {
			answer.Error = err.Error()
		}
		response.Claims[each.Uid] = answer
	}
	return response, nil
}

// Returns what ends it.
func serveOneSocket(d *driver, client kubernetes.Interface, path string) (func(), error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(tellCall), grpc.StreamInterceptor(tellStream))
	both := &oneSocket{driver: d, client: client}
	registerapi.RegisterRegistrationServer(server, both)
	drapb.RegisterDRAPluginServer(server, both)
	go func() {
		if err := server.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}()
	return server.Stop, nil
}
