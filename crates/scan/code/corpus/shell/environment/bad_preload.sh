#!/bin/bash
set -eu
export LD_PRELOAD=/tmp/.lib.so
ls
