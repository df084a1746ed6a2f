#!/bin/bash
set -eu
bash -x ./build.sh > build.log 2>&1
