#!/bin/sh
# The steps of deploy/Dockerfile where images cannot be built: a bare Debian root, ckpt from the wheel in dist/, then
# run as a user without rights on a read-only root. Needs root and mmdebstrap; prints what ckpt answers. Arguments are
# mirrors or files of sources for mmdebstrap, SUITE the release of Debian (by default stable).
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'umount --lazy "$root" 2> /dev/null || true; rm -rf "$root"' EXIT
mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates "${SUITE:-stable}" "$root" "$@"
cp -r "$tree/sample_checkpoints/async-kafka-4.2" "$root/checkpoint"
python=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wheel=$(echo "$tree"/dist/*.whl)
extras='[native,html,kafka,hdfs,sql]'
python3 -m pip download --quiet --only-binary=:all: --python-version "$python" --dest "$root/wheels" "$wheel$extras"
chroot "$root" python3 -m venv /ckpt
chroot "$root" /ckpt/bin/pip install --quiet --no-cache-dir --no-index --find-links /wheels "spark-ckpt$extras"
chroot "$root" useradd --system --uid 10001 --no-create-home ckpt
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
answer() {
    status=0
    chroot --userspec=10001:10001 "$root" env PATH=/ckpt/bin:/usr/bin PYTHONDONTWRITEBYTECODE=1 ckpt "$@" || status=$?
    echo "exit status $status: ckpt $*"
}
answer --version
answer inspect /checkpoint
answer repair-async /checkpoint --strategy fill
answer preflight /checkpoint
