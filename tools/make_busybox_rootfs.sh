#!/bin/sh
# make_busybox_rootfs.sh FILE.tar.gz: creates a root file system with only Debian's busybox-static,
# for `drakkar image import FILE.tar.gz --name localhost/busybox:1`.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 FILE.tar.gz" >&2; exit 2; }
busybox=$(command -v busybox) || { echo "busybox not found in PATH; run apt-get install busybox-static" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
mkdir -p bin dev etc proc root sys tmp var
chmod 1777 tmp
cp "$busybox" bin/busybox
for applet in $("$busybox" --list); do
  [ "$applet" = busybox ] || ln -s busybox "bin/$applet"
done
echo 'root:x:0:0:root:/root:/bin/sh' >etc/passwd
echo 'root:x:0:' >etc/group
cd - >/dev/null
# Reproducible, so that the image id is always the same.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$root" -cf - . | gzip -n >"$1"
