// Kubernetes' own reader and writer of device metadata, for tests.
//
//	gometadata read FILE    prints the internal object as v1alpha1 JSON, and the result of validation
//	gometadata write FILE   writes a stream of both versions, and prints the same
//	gometadata read-often FILE COUNT   decodes the file COUNT times and prints how many generations it saw;
//	                        fails at the first incomplete document
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/api/metadata/install"
	"k8s.io/dynamic-resource-allocation/api/metadata/v1alpha1"
	"k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func encode(object runtime.Object, versions ...schema.GroupVersion) []byte {
	scheme := install.NewScheme()
	codecs := serializer.NewCodecFactory(scheme)
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	var stream bytes.Buffer
	for _, version := range versions {
		text, err := runtime.Encode(codecs.EncoderForVersion(info.PrettySerializer, version), object)
		fail(err)
		stream.Write(text)
		stream.WriteByte('\n')
	}
	return stream.Bytes()
}

func example() *metadata.DeviceMetadata {
	text, number, truth, version, podClaim := "a <b> & \"c\"", int64(-7), false, "1.2.3-rc.1", "dev"
	return &metadata.DeviceMetadata{
		ObjectMeta:   metav1.ObjectMeta{Name: "claim-x1", Namespace: "ns", UID: "9f-1", Generation: 12},
		PodClaimName: &podClaim,
		Requests: []metadata.DeviceMetadataRequest{{
			Name: "gpu/big",
			Devices: []metadata.Device{{
				Driver: "go.example.com", Pool: "node/a", Name: "gpu-0",
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"text": {StringValue: &text}, "number": {IntValue: &number}, "truth": {BoolValue: &truth},
					"version": {VersionValue: &version}, "texts": {StringValues: []string{"x", "y"}},
					"resource.kubernetes.io/numaNode": {IntValues: []int64{0, 1}},
				},
				NetworkData: &resourceapi.NetworkDeviceData{
					InterfaceName: "eth0", IPs: []string{"10.0.0.5/24"}, HardwareAddress: "aa:bb:cc:dd:ee:ff"},
			}, {Driver: "go.example.com", Pool: "node/a", Name: "gpu-1"}},
		}},
	}
}

func read(path string) *metadata.DeviceMetadata {
	file, err := os.Open(path)
	fail(err)
	defer file.Close()
	var object metadata.DeviceMetadata
	var invalid error
	fail(devicemetadata.DecodeMetadataFromStream(json.NewDecoder(file), &object,
		devicemetadata.DecodeMetadataWithValidationResult(&invalid)))
	fail(invalid)
	return &object
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "read-often" {
		count, err := strconv.Atoi(os.Args[3])
		fail(err)
		seen := map[int64]bool{}
		for range count {
			seen[read(os.Args[2]).Generation] = true
		}
		fmt.Println(len(seen))
		return
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gometadata read|write FILE")
		os.Exit(2)
	}
	if os.Args[1] == "write" {
		object := example()
		fail(os.WriteFile(os.Args[2], encode(object, v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion), 0o644))
		os.Stdout.Write(encode(object, v1alpha1.SchemeGroupVersion))
		return
	}
	os.Stdout.Write(encode(read(os.Args[2]), v1alpha1.SchemeGroupVersion))
}
