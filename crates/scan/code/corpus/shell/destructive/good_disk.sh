#!/bin/bash
set -eu
dd if=/dev/urandom of=random.bin bs=1M count=1
