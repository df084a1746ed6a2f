#!/bin/bash
set -eu
rm -rf "${BUILD_DIR:?}/out"
