#!/bin/bash
set -eu
docker run --rm -it -v "$PWD":/src alpine sh
