// gokubelet plays the kubelet's side against a DRA driver with Kubernetes' own generated clients:
// registration, prepare and unprepare (v1 and v1beta1), health (v1 and v1alpha1).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

var failures int

func check(ok bool, what string, details ...any) {
	if ok {
		fmt.Printf("ok   %s\n", what)
		return
	}
	failures++
	fmt.Printf("FAIL %s: %v\n", what, fmt.Sprint(details...))
}

func dial(socket string) *grpc.ClientConn {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Printf("FAIL dial %s: %v\n", socket, err)
		os.Exit(1)
	}
	return conn
}

func main() {
	registrar := flag.String("registrar", "", "the registration socket")
	driver := flag.String("driver", "", "the driver's name")
	claimFlag := flag.String("claim", "", "namespace/name/uid of a claim that is allocated")
	prepareOnly := flag.Bool("prepare-only", false, "prepare the claim and leave it so")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	reg := registration.NewRegistrationClient(dial(*registrar))
	info, err := reg.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		fmt.Printf("FAIL GetInfo: %v\n", err)
		os.Exit(1)
	}
	if *prepareOnly {
		parts := strings.Split(*claimFlag, "/")
		answer, err := drav1.NewDRAPluginClient(dial(info.Endpoint)).NodePrepareResources(ctx,
			&drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{{Namespace: parts[0], Name: parts[1], Uid: parts[2]}}})
		if err != nil || answer.Claims[parts[2]] == nil || answer.Claims[parts[2]].Error != "" {
			fmt.Printf("FAIL prepare: %v %v\n", err, answer)
			os.Exit(1)
		}
		return
	}
	check(info.Type == registration.DRAPlugin, "the type is DRAPlugin", info.Type)
	check(info.Name == *driver, "the name is the driver's", info.Name)
	for _, service := range []string{drav1.DRAPluginService, drav1beta1.DRAPluginService, "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"} {
		found := false
		for _, each := range info.SupportedVersions {
			found = found || each == service
		}
		check(found, "the service "+service+" is advertised", info.SupportedVersions)
	}
	_, err = reg.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: false, Error: "just a test"})
	check(err != nil && strings.Contains(err.Error(), "just a test"), "a refused registration is answered with an error", err)
	_, err = reg.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true})
	check(err == nil, "a successful registration is taken", err)

	conn := dial(info.Endpoint)
	parts := strings.Split(*claimFlag, "/")
	namespace, name, uid := parts[0], parts[1], parts[2]

	v1 := drav1.NewDRAPluginClient(conn)
	claim := &drav1.Claim{Namespace: namespace, Name: name, Uid: uid}
	prepare := func(claims ...*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
		return v1.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
	}
	first, err := prepare(claim)
	check(err == nil && first.Claims[uid] != nil && first.Claims[uid].Error == "" && len(first.Claims[uid].Devices) > 0,
		"v1: a claim is prepared", err, first)
	again, err := prepare(claim)
	check(err == nil && fmt.Sprint(again) == fmt.Sprint(first), "v1: preparing again gives the same answer", err, again)
	mixed, err := prepare(&drav1.Claim{Namespace: namespace, Name: "no-such-claim", Uid: "x"}, claim)
	check(err == nil && mixed.Claims["x"] != nil && mixed.Claims["x"].Error != "", "v1: an unknown claim is refused", err, mixed)
	check(err == nil && mixed.Claims[uid] != nil && mixed.Claims[uid].Error == "", "v1: the claim beside it is prepared", err, mixed)
	replaced, err := prepare(&drav1.Claim{Namespace: namespace, Name: name, Uid: "another-uid"})
	check(err == nil && replaced.Claims["another-uid"] != nil && replaced.Claims["another-uid"].Error != "",
		"v1: a claim that was replaced is refused", err, replaced)

	beta := drav1beta1.NewDRAPluginClient(conn)
	betaAnswer, err := beta.NodePrepareResources(ctx, &drav1beta1.NodePrepareResourcesRequest{
		Claims: []*drav1beta1.Claim{{Namespace: namespace, Name: name, Uid: uid}}})
	check(err == nil && betaAnswer.Claims[uid] != nil && len(betaAnswer.Claims[uid].Devices) == len(first.Claims[uid].Devices),
		"v1beta1: the same claim is prepared", err, betaAnswer)

	var wait sync.WaitGroup
	errors := make([]error, 20)
	for i := range errors {
		wait.Add(1)
		go func() {
			defer wait.Done()
			_, errors[i] = prepare(claim)
		}()
	}
	wait.Wait()
	bad := 0
	for _, each := range errors {
		if each != nil {
			bad++
		}
	}
	check(bad == 0, "v1: twenty calls at once are all answered", bad)

	unprepare := func(u string) (*drav1.NodeUnprepareResourcesResponse, error) {
		return v1.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{
			Claims: []*drav1.Claim{{Namespace: namespace, Name: name, Uid: u}}})
	}
	for _, each := range []string{uid, uid, "never-prepared"} {
		answer, err := unprepare(each)
		check(err == nil && answer.Claims[each] != nil && answer.Claims[each].Error == "", "v1: unprepare of "+each, err, answer)
	}
	betaUnprepared, err := beta.NodeUnprepareResources(ctx, &drav1beta1.NodeUnprepareResourcesRequest{
		Claims: []*drav1beta1.Claim{{Namespace: namespace, Name: name, Uid: uid}}})
	check(err == nil && betaUnprepared.Claims[uid] != nil, "v1beta1: unprepare", err)

	stream, err := healthv1.NewDRAResourceHealthClient(conn).NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
	check(err == nil, "health v1: the stream opens", err)
	if err == nil {
		report, err := stream.Recv()
		names := []string{}
		if err == nil {
			for _, device := range report.Devices {
				names = append(names, device.Device.DeviceName+"="+device.Health.String())
			}
		}
		sort.Strings(names)
		check(len(names) == 4 && names[0] == "sim-0=HEALTHY", "health v1: the first report names all devices", err, names)
	}
	alphaStream, err := healthv1alpha1.NewDRAResourceHealthClient(conn).NodeWatchResources(ctx, &healthv1alpha1.NodeWatchResourcesRequest{})
	check(err == nil, "health v1alpha1: the stream opens", err)
	if err == nil {
		report, err := alphaStream.Recv()
		check(err == nil && len(report.Devices) == 4, "health v1alpha1: the first report names all devices", err)
	}
	if failures > 0 {
		fmt.Printf("%d failed\n", failures)
		os.Exit(1)
	}
}
