// Command gowebhook is an admission and conversion webhook written with Kubernetes' published types. It makes a
// certificate of its own, writes the CA to --ca-file and its port to --port-file, and serves until it is killed.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	scheme      = runtime.NewScheme()
	codecs      = serializer.NewCodecFactory(scheme)
	connections atomic.Int64
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func certificate(caFile string) tls.Certificate {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gowebhook CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	check(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "hook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"hook.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	check(err)
	check(os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), 0o644))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func decode(w http.ResponseWriter, r *http.Request, into runtime.Object) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = codecs.UniversalDeserializer().Decode(body, nil, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func respond(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	check(json.NewEncoder(w).Encode(object))
}

func admission(admit func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if !decode(w, r, review) {
			return
		}
		response := admit(review.Request)
		response.UID = review.Request.UID
		respond(w, &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
	}
}

// mutate adds a sidecar to pods and says who created them.
func mutate(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	pod := &corev1.Pod{}
	if _, _, err := codecs.UniversalDeserializer().Decode(request.Object.Raw, nil, pod); err != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/spec/containers/-", "value": corev1.Container{Name: "sidecar", Image: "localhost/sidecar:1"}},
		{"op": "add", "path": "/metadata/annotations", "value": map[string]string{"created-by": request.UserInfo.Username}},
	})
	check(err)
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind, Warnings: []string{"a sidecar was added"}}
}

// validate rejects ConfigMaps with the key "bad", and updates that remove the key "kept".
func validate(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	object, old := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	for raw, into := range map[*runtime.RawExtension]*corev1.ConfigMap{&request.Object: object, &request.OldObject: old} {
		if len(raw.Raw) == 0 {
			continue
		}
		if _, _, err := codecs.UniversalDeserializer().Decode(raw.Raw, nil, into); err != nil {
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
		}
	}
	if _, bad := object.Data["bad"]; bad {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "the key bad is not allowed", Code: 403, Reason: metav1.StatusReasonForbidden}}
	}
	if _, had := old.Data["kept"]; had && object.Data["kept"] == "" {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: string(request.Operation) + " removes the key kept"}}
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// convert splits spec.hostPort of v1 into spec.host and spec.port of v2, and back.
func convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if !decode(w, r, review) {
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		object := &unstructured.Unstructured{}
		check(object.UnmarshalJSON(raw.Raw))
		spec := map[string]any{}
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v2") {
			text, _, _ := unstructured.NestedString(object.Object, "spec", "hostPort")
			host, port, _ := strings.Cut(text, ":")
			spec["host"], spec["port"] = host, port
		} else {
			host, _, _ := unstructured.NestedString(object.Object, "spec", "host")
			port, _, _ := unstructured.NestedString(object.Object, "spec", "port")
			spec["hostPort"] = host + ":" + port
		}
		object.Object["spec"] = spec
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		encoded, err := object.MarshalJSON()
		check(err)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: encoded})
	}
	respond(w, &apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: response})
}

func main() {
	caFile := flag.String("ca-file", "", "where to write the CA")
	portFile := flag.String("port-file", "", "where to write the port")
	flag.Parse()
	utilruntime.Must(admissionv1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", admission(mutate))
	mux.HandleFunc("/validate", admission(validate))
	mux.HandleFunc("/convert", convert)
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/connections", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, connections.Load()) })
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate(*caFile)}})
	check(err)
	check(os.WriteFile(*portFile+".new", []byte(fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)), 0o644))
	check(os.Rename(*portFile+".new", *portFile))
	server := &http.Server{Handler: mux, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}}
	check(server.Serve(listener))
}
