#!/usr/bin/env bash
# Builds a wheel of Horovod's released sources, less one file, for the TensorFlow of the python on PATH and leaves it in a cache folder.
# usage: build_horovod.sh HOROVOD_VERSION CACHE_FOLDER
set -euo pipefail
version=$1 cache=$2
if compgen -G "$cache/horovod-*.whl" >/dev/null; then
  echo "Horovod $version: using the wheel in $cache"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"
cd "$work"
pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation "horovod==$version"
tar xzf "horovod-$version.tar.gz"
cd "horovod-$version"
# xla_mpi_ops.cc includes headers that TensorFlow stopped shipping; it serves XLA on GPUs only.
sed -i '/xla_mpi_ops\.cc/d' horovod/tensorflow/CMakeLists.txt
# Compilers from gcc 13 on miss two standard headers in these sources.
export CXXFLAGS="-include stdexcept -include string"
export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1
export HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 MAKEFLAGS="-j$(nproc)"
# -v for the compiler's progress.
pip wheel -v --disable-pip-version-check --no-deps --no-build-isolation -w "$work/wheel" .
wheel=$(basename "$work"/wheel/horovod-*.whl)
# By a rename, so that a wheel in the cache is a whole one.
mv "$work/wheel/$wheel" "$cache/$wheel.part"
mv "$cache/$wheel.part" "$cache/$wheel"
