#!/usr/bin/env bash
# Set up a virtual environment with everything the project needs: tools/setup.sh VENV
#
# PYTHON       the interpreter to use, 3.10 to 3.12          (default: python3)
# TORCH_INDEX  an index searched for PyTorch beside PyPI's   (default: none)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${1:-.venv}
python=${PYTHON:-python3}

fail() { echo "setup: $*" >&2; exit 1; }

command -v "$python" >/dev/null || fail "no '$python' here; name an interpreter: make PYTHON=python3.11"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in
    3.10 | 3.11 | 3.12) ;;
    *) fail "$python is Python $version, but 3.10, 3.11 or 3.12 is needed: make PYTHON=python3.11" ;;
esac

# Rendering, Open3D, and a compiler for the one dependency without wheels (evdev).
missing=()
if command -v dpkg-query >/dev/null; then
    packages=(libegl1 libegl-mesa0 libgl1-mesa-dri libgles2 libgl1 libosmesa6 libusb-1.0-0 libgomp1)
    for package in "${packages[@]}"; do
        [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *" installed" ]] || missing+=("$package")
    done
    command -v gcc >/dev/null || missing+=(gcc libc6-dev)
    "$python" -c 'import ensurepip' 2>/dev/null || missing+=("python$version-venv")
    header=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
    [[ -e $header ]] || missing+=("python$version-dev")
fi
if ((${#missing[@]})); then
    sudo=()
    ((EUID == 0)) || sudo=(sudo)
    if command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }; then
        echo "setup: installing system packages: ${missing[*]}"
        "${sudo[@]}" apt-get update -qq
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    else
        fail "system packages are missing; run: sudo apt-get install ${missing[*]}"
    fi
fi

[[ -x $venv/bin/pip ]] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
# PyTorch comes first and without dependencies, so that a CPU build brings no CUDA libraries.
"${pip[@]}" install --quiet --no-deps ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -c constraints.txt torch
"${pip[@]}" install --quiet -c constraints.txt -e '.[dev]'
