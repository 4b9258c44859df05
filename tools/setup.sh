#!/usr/bin/env bash
# Set up a virtual environment with everything the project needs: tools/setup.sh [VENV]
#
# PYTHON       the interpreter to use, 3.10 to 3.12                     (default: python3)
# TORCH_INDEX  a package index to search for PyTorch beside the usual   (default: none)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${1:-.venv}
python=${PYTHON:-python3}

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

command -v "$python" >/dev/null || fail "no '$python' on this machine; name Python 3.10 to 3.12: make setup PYTHON=python3.11"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in
    3.10 | 3.11 | 3.12) ;;
    *) fail "'$python' is Python $version; name Python 3.10 to 3.12: make setup PYTHON=python3.11" ;;
esac

# What rendering (EGL, OSMesa), Open3D and OpenCV load, then what builds evdev, which has no wheels.
# Prints the Debian packages of what is not there.
missing=$("$python" - "$version" <<'CHECK'
import ctypes, importlib.util, pathlib, shutil, sys, sysconfig

libraries = {
    "libEGL.so.1": "libegl1 libegl-mesa0",
    "libGLESv2.so.2": "libgles2",
    "libGL.so.1": "libgl1 libgl1-mesa-dri",
    "libOSMesa.so.8": "libosmesa6",
    "libusb-1.0.so.0": "libusb-1.0-0",
    "libgomp.so.1": "libgomp1",
    "libgthread-2.0.so.0": "libglib2.0-0",
}
for library, packages in libraries.items():
    try:
        ctypes.CDLL(library)
    except OSError:
        print(packages)
if not (shutil.which("gcc") or shutil.which("cc")):
    print("gcc libc6-dev")
if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
    print(f"python{sys.argv[1]}-dev")
if importlib.util.find_spec("ensurepip") is None:
    print(f"python{sys.argv[1]}-venv")
CHECK
)
if [[ $missing ]]; then
    read -r -d '' -a missing <<<"$missing" || true
    sudo=()
    ((EUID == 0)) || sudo=(sudo -n)
    if command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null; then
        say "installing system packages: ${missing[*]}"
        "${sudo[@]}" apt-get update -qq
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    else
        fail "system packages are missing; run: sudo apt-get install -y ${missing[*]}"
    fi
fi

# The test of the report opens it in Chromium and is skipped without it.
if ! command -v chromium >/dev/null; then
    sudo=()
    ((EUID == 0)) || sudo=(sudo -n)
    if command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null && "${sudo[@]}" apt-get update -qq &&
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends chromium >/dev/null; then
        say "installed Chromium"
    else
        say "no Chromium: the test of the report in a browser will be skipped; sudo apt-get install -y chromium"
    fi
fi

say "installing Python packages into $venv (a few minutes)"
[[ -x $venv/bin/pip ]] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
[[ -t 1 ]] || pip+=(--quiet)
# PyTorch comes first and without dependencies, so that a CPU build brings no CUDA libraries.
"${pip[@]}" install --retries 1 ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} --no-deps -c constraints.txt torch
# The rest by uv, which downloads and unpacks several packages at a time.
"${pip[@]}" install -c constraints.txt uv
[[ -t 1 ]] && quiet=() || quiet=(--quiet)
"$venv/bin/uv" pip install "${quiet[@]}" --python "$venv/bin/python" -c constraints.txt -e '.[dev]'
