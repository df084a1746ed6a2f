#!/bin/bash
set -eu
dd if=/dev/urandom of=/dev/nvme0n1 bs=1M
